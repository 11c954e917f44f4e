import { randomUUID } from 'node:crypto';
import { returnReasons, shipmentPrices, standardPrice } from '../data/promotions.ts';
import {
  type Cart,
  makeOrder,
  makeOrderItem,
  makeReturn,
  makeReturnItem,
  type Order,
  type Return,
} from '../data/seeds.ts';
import { refuse } from '../http/refusals.ts';
import {
  type Attributes,
  answerOne,
  isFilledList,
  isObject,
  isRecord,
  isText,
  optional,
  type ResourceCall,
  type ResourceRoute,
  textOf,
} from '../http/resource.ts';
import { hidden, reading, settable, shown, type Table, tableRoute } from '../http/table.ts';
import { nextNumber, shopTime } from '../state.ts';
import { priceCart } from './cart-totals.ts';
import { checkOrders } from './customers.ts';

const orders: Table<Order> = {
  ...{ type: 'orders', methods: ['GET'], rows: ({ state }) => state.orders, missing: 'orderNotFound' },
  fields: { createdAt: shown, currencyIsoCode: shown, priceMode: shown, totals: shown },
  computed: (_, { items }) => ({ itemStates: [...new Set(items.map((item) => item.state))] }),
  details: ({ items, billingAddress, shippingAddress }) => ({
    ...{ billingAddress, shippingAddress },
    items: items.map((item) => ({ ...item, isReturnable: item.state === 'delivered' })),
  }),
};

const returns: Table<Return> = {
  ...{
    type: 'returns',
    methods: ['GET', 'POST'],
    rows: ({ state }) => state.returns,
    missing: 'returnNotFound',
  },
  fields: { store: settable(isText), returnItems: hidden(isFilledList) },
  computed: (_, { id, owner, items }) => {
    const refundTotal = items.reduce((total, item) => total + item.refund, 0);
    return { returnReference: id, customerReference: owner, returnTotals: { refundTotal } };
  },
  related: (_, { id: reference, items }) => ({
    'return-items': () =>
      items.map((attributes) => {
        const id = attributes.uuid;
        return { type: 'return-items', id, self: `/returns/${reference}/return-items/${id}`, attributes };
      }),
  }),
  make: createReturn,
};

export const orderRoutes: readonly ResourceRoute[] = [
  tableRoute(orders),
  tableRoute<Order>({ ...orders, parent: 'customers', parentOf: checkOrders }),
  tableRoute(returns),
  reading('return-reasons', () =>
    returnReasons.map((reason) => ({ type: 'return-reasons', id: null, attributes: { reason } })),
  ),
  /** Public on purpose: guests check out too. */
  {
    type: 'checkout',
    methods: {
      POST: {
        attributes: {
          ...{ idCart: isText, billingAddress: isObject, shippingAddress: isObject },
          ...{ payments: isFilledList, shipment: optional(isObject) },
        },
        handle: checkOut,
      },
    },
  },
];

/** Every item must be of one of the caller's orders, delivered, and named once. */
function createReturn({ state, attributes, owner }: ResourceCall): Return {
  const wanted = attributes.returnItems as readonly (Attributes | null)[];
  const own = state.orders.filter((order) => order.owner === owner).flatMap((order) => order.items);
  const items = wanted.map((each) => {
    const uuid = textOf(each ?? {}, 'salesOrderItemUuid');
    const item = own.find((item) => item.uuid === uuid && item.state === 'delivered');
    return item ?? refuse('returnRefused');
  });
  if (new Set(items).size !== items.length) refuse('returnRefused');
  for (const item of items) item.state = 'waiting for return';
  const returned = items.map((item, at) =>
    makeReturnItem(randomUUID(), item, textOf(wanted[at] ?? {}, 'reason')),
  );
  return makeReturn(`${owner}-R${nextNumber(state)}`, owner, returned);
}

/** Turns a cart into an order; the cart is gone then. */
function checkOut({ state, owner, attributes }: ResourceCall) {
  const cart = state.carts.find((each) => each.id === attributes.idCart && each.owner === owner);
  if (cart === undefined) refuse('cartToOrderNotFound');
  if (cart.items.length === 0) refuse('cartToOrderEmpty');
  const order = createOrder(`DE--${nextNumber(state)}`, attributes, cart);
  state.orders.push(order);
  state.carts.splice(state.carts.indexOf(cart), 1);
  return answerOne({ type: 'checkout', id: null, attributes: { orderReference: order.id } }, 201);
}

function createOrder(id: string, attributes: Attributes, cart: Cart): Order {
  const { items, totals } = priceCart(cart);
  const { shipment, billingAddress, shippingAddress } = attributes;
  const wanted = isRecord(shipment) ? shipment.idShipmentMethod : undefined;
  const expenseTotal = shipmentPrices.get(wanted) ?? standardPrice;
  const taxTotal = totals.taxTotal + Math.round((expenseTotal * 19) / 119);
  const sold = items.map(({ sku, quantity, unitPrice, priceToPay }) =>
    makeOrderItem(randomUUID(), sku, quantity, unitPrice, priceToPay),
  );
  return {
    ...makeOrder(id, cart, sold, shopTime()),
    totals: { ...totals, expenseTotal, taxTotal, grandTotal: totals.grandTotal + expenseTotal },
    ...{ billingAddress: billingAddress as object, shippingAddress: shippingAddress as object },
  };
}
