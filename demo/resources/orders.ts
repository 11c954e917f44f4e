import { randomUUID } from 'node:crypto';
import type { Cart, Order, Return } from '../data/seeds.ts';
import { makeOrder, makeOrderItem, makeReturn, makeReturnItem, nextNumber } from '../data/seeds.ts';
import { refuse } from '../http/refusals.ts';
import type { Answer, ResourceCall, ResourceRoute } from '../http/resource.ts';
import * as rule from '../http/rules.ts';
import { each, hidden, reading, settable, shown, Table } from '../http/table.ts';
import { priceCart } from './cart-totals.ts';
import { checkOrders } from './customers.ts';

const orders = new Table<Order>({
  ...{ type: 'orders', methods: ['GET'], rows: ({ state }) => state.orders, missing: 'orderNotFound' },
  fields: each(shown, 'createdAt', 'currencyIsoCode', 'priceMode', 'totals'),
  /** A list of orders does not show their items. */
  computed: ({ id }, { items }) => {
    return { itemStates: [...new Set(items.map((item) => item.state))], ...(id && { items }) };
  },
});

const returns = new Table<Return>({
  ...{ type: 'returns', methods: ['GET', 'POST'], missing: 'returnNotFound' },
  rows: ({ state }) => state.returns,
  fields: { store: settable(rule.text), returnItems: hidden(rule.filledList) },
  computed: (_, { id, owner, items }) => {
    const refundTotal = items.reduce((total, item) => total + item.refund, 0);
    return { returnReference: id, customerReference: owner, returnTotals: { refundTotal } };
  },
  related: (_, { id: reference, items }) => {
    const showItem = (attributes: Return['items'][number]) => {
      const id = attributes.uuid;
      return { type: 'return-items', id, self: `/returns/${reference}/return-items/${id}`, attributes };
    };
    return { 'return-items': () => items.map(showItem) };
  },
  make: createReturn,
});

const returnReasons = ['Damaged', 'Wrong item', 'No longer needed'];

const checkout = {
  ...{ idCart: rule.text, billingAddress: rule.object, shippingAddress: rule.object },
  ...{ payments: rule.filledList, shipment: rule.optional(rule.object) },
};

export const orderRoutes: readonly ResourceRoute[] = [
  orders.route,
  new Table<Order>({ ...orders.columns, parent: 'customers', parentOf: checkOrders }).route,
  returns.route,
  reading('return-reasons', () =>
    returnReasons.map((reason) => ({ type: 'return-reasons', id: null, attributes: { reason } })),
  ),
  /** Public on purpose: guests check out, too. */
  { type: 'checkout', methods: { POST: { attributes: checkout, handle: checkOut } } },
];

/** Every item must belong to an order of the caller, be delivered, and be named once. */
function createReturn({ state, attributes, owner }: ResourceCall): Return {
  const own = state.orders.filter((order) => order.owner === owner).flatMap((order) => order.items);
  const items = (attributes.returnItems as readonly (rule.Attributes | null)[]).map((wanted) => {
    const uuid = rule.readText(wanted ?? {}, 'salesOrderItemUuid');
    const item = own.find((item) => item.uuid === uuid && item.state === 'delivered');
    return { item: item ?? refuse('returnRefused'), reason: rule.readText(wanted ?? {}, 'reason') };
  });
  if (new Set(items.map(({ item }) => item)).size !== items.length) refuse('returnRefused');
  for (const { item } of items) item.state = 'waiting for return';
  const returned = items.map(({ item, reason }) => makeReturnItem(randomUUID(), item, reason));
  return makeReturn(`${owner}-R${nextNumber(state)}`, { owner, items: returned });
}

/** Makes an order of a cart, and removes the cart. */
function checkOut({ state, owner, attributes }: ResourceCall): Answer {
  const cart = state.carts.find((each) => each.id === attributes.idCart && each.owner === owner);
  if (cart === undefined) refuse('cartToOrderNotFound');
  if (cart.items.length === 0) refuse('cartToOrderEmpty');
  const order = createOrder(`DE--${nextNumber(state)}`, attributes, cart);
  state.orders.push(order);
  state.carts.splice(state.carts.indexOf(cart), 1);
  return { status: 201, data: { type: 'checkout', id: null, attributes: { orderReference: order.id } } };
}

function createOrder(id: string, attributes: rule.Attributes, cart: Cart): Order {
  const { items, totals } = priceCart(cart);
  const { shipment } = attributes;
  // Shipment method 2 is express.
  const expenseTotal = rule.isRecord(shipment) && shipment.idShipmentMethod === 2 ? 590 : 490;
  const taxTotal = totals.taxTotal + Math.round((expenseTotal * 19) / 119);
  const sold = items.map(({ sku, quantity, unitPrice, priceToPay }) =>
    makeOrderItem(randomUUID(), sku, quantity, unitPrice, priceToPay),
  );
  const grandTotal = totals.grandTotal + expenseTotal;
  return makeOrder(id, cart, sold, { ...totals, expenseTotal, taxTotal, grandTotal });
}
