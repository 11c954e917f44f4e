import { findOffer } from '../data/products.ts';
import { paymentMethods, returnReasons, shipmentMethods } from '../data/promotions.ts';
import type { Address, Cart, Order, OrderItem, Return } from '../entities.ts';
import { collection, pick, reading } from '../http/collection.ts';
import { refuse } from '../http/refusals.ts';
import {
  type Attributes,
  answerOne,
  isFilledList,
  isObject,
  isText,
  numberOf,
  objectOf,
  optional,
  ownRecords,
  type Resource,
  type ResourceCall,
  type ResourceRoute,
  textOf,
} from '../http/resource.ts';
import { newId, nextNumber, shopTime } from '../state.ts';
import { callerOf } from './cart-access.ts';
import { priceCart } from './cart-totals.ts';

const checkout = { billingAddress: isObject, shippingAddress: isObject, payments: isFilledList };

export const orderRoutes: readonly ResourceRoute[] = [
  ordersOf(),
  ordersOf('customers', (call, reference) => {
    if (reference !== call.user.reference) refuse('ordersForbidden');
  }),
  collection<Return>({
    type: 'returns',
    records: (call) => ownRecords(call, call.state.returns),
    missing: 'returnNotFound',
    show: showReturn,
    create: { attributes: { store: isText, returnItems: isFilledList }, run: createReturn },
  }),
  reading('return-reasons', () =>
    returnReasons.map((reason) => ({ type: 'return-reasons', id: null, attributes: { reason } })),
  ),
  /** Public on purpose: guests check out too. */
  {
    type: 'checkout',
    methods: {
      POST: { attributes: { idCart: isText, ...checkout, shipment: optional(isObject) }, handle: checkOut },
    },
  },
  { type: 'checkout-data', methods: { POST: { attributes: { idCart: isText }, handle: showCheckoutData } } },
];

function ordersOf(parent?: string, checkParent?: (call: ResourceCall, id: string | undefined) => void) {
  return collection<Order, void>({
    type: 'orders',
    ...(parent === undefined || checkParent === undefined ? {} : { parent, parentOf: checkParent }),
    records: (call) => {
      const own = ownRecords(call, call.state.orders);
      if (call.id) return own;
      const offset = Number(call.query.items.get('page[offset]') ?? 0) || 0;
      const limit = Number(call.query.items.get('page[limit]') ?? own.length) || own.length;
      return own.slice(offset, offset + limit);
    },
    missing: 'orderNotFound',
    summarize,
    show: showOrder,
  });
}

/** The list leaves out what only one order shows. */
function summarize(_: ResourceCall, { reference, items, currency, ...order }: Order): Resource {
  const itemStates = [...new Set(items.map((item) => item.state))];
  const { createdAt, priceMode, totals } = order;
  const attributes = { itemStates, createdAt, currencyIsoCode: currency, priceMode, totals };
  return { type: 'orders', id: reference, attributes };
}

function showOrder(call: ResourceCall, order: Order): Resource {
  const summary = summarize(call, order);
  const { items, shipmentMethod, paymentMethod, totals, discounts } = order;
  const carrier = { carrierName: 'Demo Dummy Shipment', deliveryTime: null };
  const attributes = {
    ...summary.attributes,
    ...pick(order, 'billingAddress', 'shippingAddress'),
    items: items.map((item) => ({ ...item, isReturnable: item.state === 'delivered' })),
    expenses: [{ type: 'SHIPMENT_EXPENSE_TYPE', name: shipmentMethod, sumPrice: totals.expenseTotal }],
    payments: [{ amount: totals.grandTotal, paymentProvider: 'DummyPayment', paymentMethod }],
    shipments: [{ shipmentMethodName: shipmentMethod, ...carrier }],
    calculatedDiscounts: discounts,
  };
  return { ...summary, attributes };
}

/** Every item must be of one of the caller's orders, delivered, and named once. */
function createReturn(call: ResourceCall): Return {
  const { state, attributes, user } = call;
  const wanted = attributes.returnItems as readonly (Attributes | null)[];
  const own = ownRecords(call, state.orders).flatMap((order) => order.items);
  const returnable = own.filter((item) => item.state === 'delivered');
  const items = wanted.map((each) => {
    const uuid = textOf(each ?? {}, 'salesOrderItemUuid');
    return returnable.find((item) => item.uuid === uuid) ?? refuse('returnRefused');
  });
  if (new Set(items).size !== items.length) refuse('returnRefused');
  const created: Return = {
    reference: `${user.reference}-R${nextNumber(state)}`,
    owner: user.reference,
    store: textOf(attributes, 'store'),
    items: items.map(({ uuid: orderItemUuid, refundableAmount: refund }, at) => {
      return { uuid: newId(), orderItemUuid, reason: textOf(wanted[at] ?? {}, 'reason'), refund };
    }),
  };
  for (const item of items) item.state = 'waiting for return';
  state.returns.set(created.reference, created);
  return created;
}

function showReturn(_: ResourceCall, { reference, store, owner, items }: Return): Resource {
  const refundTotal = items.reduce((total, item) => total + item.refund, 0);
  const named = { returnReference: reference, store, customerReference: owner };
  const showItem = (item: Return['items'][number]) => {
    const self = `/returns/${reference}/return-items/${item.uuid}`;
    const attributes = pick(item, 'uuid', 'orderItemUuid', 'reason', 'refund');
    return { type: 'return-items', id: item.uuid, self, attributes };
  };
  return {
    type: 'returns',
    id: reference,
    attributes: { ...named, returnTotals: { refundTotal } },
    related: { 'return-items': () => items.map(showItem) },
  };
}

/** Turns a cart into an order; the cart is gone then. */
function checkOut(call: ResourceCall) {
  const cart = cartToOrder(call);
  if (cart.items.length === 0) refuse('cartToOrderEmpty');
  const order = createOrder(call, cart);
  call.state.orders.set(order.reference, order);
  call.state.carts.delete(cart.id);
  const attributes = { orderReference: order.reference, redirectUrl: null, isExternalRedirect: null };
  return answerOne({ type: 'checkout', id: null, attributes }, 201);
}

function cartToOrder(call: ResourceCall): Cart {
  const cart = call.state.carts.get(textOf(call.attributes, 'idCart'));
  return cart?.owner === callerOf(call) ? cart : refuse('cartToOrderNotFound');
}

function createOrder({ state, attributes }: ResourceCall, cart: Cart): Order {
  const { items, totals, discounts } = priceCart(cart);
  const wanted = numberOf(objectOf(attributes, 'shipment'), 'idShipmentMethod');
  const { price, name } = shipmentMethods.find((method) => method.id === wanted) ?? shipmentMethods[0];
  const [payment] = attributes.payments as readonly Attributes[];
  const orderItems = items.map(({ sku, priceToPay: refundableAmount, ...item }): OrderItem => {
    const offer = findOffer(sku);
    const merchantReference = offer?.product.merchantReference ?? '';
    return {
      ...{ uuid: newId(), sku, name: offer?.concrete.name ?? sku },
      ...pick(item, 'quantity', 'unitPrice', 'sumPrice'),
      ...{ refundableAmount, merchantReference, state: 'paid' },
    };
  });
  return {
    ...{ reference: `DE--${nextNumber(state)}`, owner: cart.owner, createdAt: shopTime() },
    ...pick(cart, 'currency', 'priceMode'),
    totals: {
      ...{ expenseTotal: price, discountTotal: totals.discountTotal },
      taxTotal: totals.taxTotal + Math.round((price * 19) / 119),
      ...{ subtotal: totals.subtotal, grandTotal: totals.grandTotal + price },
      ...{ canceledTotal: 0, remunerationTotal: 0 },
    },
    items: orderItems,
    billingAddress: objectOf(attributes, 'billingAddress') as Partial<Address>,
    shippingAddress: objectOf(attributes, 'shippingAddress') as Partial<Address>,
    shipmentMethod: name,
    paymentMethod: textOf(payment ?? {}, 'paymentMethodName', 'Invoice'),
    discounts,
  };
}

function showCheckoutData(call: ResourceCall) {
  cartToOrder(call);
  const methods = paymentMethods.map(({ method }) => method);
  const attributes = {
    addresses: call.state.customers.get(callerOf(call))?.addresses ?? [],
    paymentProviders: [{ paymentProviderName: 'DummyPayment', paymentMethods: methods }],
    shipmentMethods: shipmentMethods.map((method) => ({ ...method, currencyIsoCode: 'EUR' })),
  };
  return answerOne({ type: 'checkout-data', id: null, attributes });
}
