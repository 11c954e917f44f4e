import type { Order } from '../entities.ts';
import { answerMany, answerOne, type Resource, type ResourceCall, type ResourceRoute } from '../http/call.ts';
import { refuse } from '../http/shop-error.ts';

export const orderRoutes: readonly ResourceRoute[] = [
  { type: 'orders', methods: { GET: { handle: readOrders } } },
  {
    type: 'orders',
    parent: 'customers',
    methods: {
      GET: {
        handle: (call) => {
          if (call.parents.get('customers') !== call.user.reference) refuse('ordersForbidden');
          return readOrders(call);
        },
      },
    },
  },
];

function readOrders(call: ResourceCall) {
  const own = [...call.state.orders.values()].filter((order) => order.owner === call.user.reference);
  if (!call.id) {
    const offset = Number(call.query.items.get('page[offset]') ?? 0) || 0;
    const limit = Number(call.query.items.get('page[limit]') ?? own.length) || own.length;
    return answerMany(own.slice(offset, offset + limit).map(summarize));
  }
  const order = own.find((each) => each.reference === call.id);
  if (order === undefined) refuse('orderNotFound');
  return answerOne(showOrder(order));
}

/** The list leaves out what only one order shows. */
function summarize(order: Order): Resource {
  const { createdAt, currency, priceMode, totals } = order;
  return {
    type: 'orders',
    id: order.reference,
    attributes: { ...stateOf(order), createdAt, currencyIsoCode: currency, priceMode, totals },
  };
}

function stateOf(order: Order) {
  return { itemStates: [...new Set(order.items.map((item) => item.state))] };
}

function showOrder(order: Order): Resource {
  const summary = summarize(order);
  const { billingAddress, shippingAddress, shipmentMethod, paymentMethod, totals, discounts } = order;
  return {
    ...summary,
    attributes: {
      ...summary.attributes,
      billingAddress,
      shippingAddress,
      items: order.items.map((item) => ({ ...item, isReturnable: item.state === 'delivered' })),
      expenses: [{ type: 'SHIPMENT_EXPENSE_TYPE', name: shipmentMethod, sumPrice: totals.expenseTotal }],
      payments: [{ amount: totals.grandTotal, paymentProvider: 'DummyPayment', paymentMethod }],
      shipments: [
        { shipmentMethodName: shipmentMethod, carrierName: 'Demo Dummy Shipment', deliveryTime: null },
      ],
      calculatedDiscounts: discounts,
    },
  };
}
