import { returnReasons } from '../data/promotions.ts';
import type { Order, OrderItem, Return } from '../entities.ts';
import { type Attributes, isFilledList, isText, textOf } from '../http/attributes.ts';
import { answerMany, answerOne, type Resource, type ResourceCall, type ResourceRoute } from '../http/call.ts';
import { refuse } from '../http/shop-error.ts';
import { newId, nextNumber } from '../state.ts';

export const returnRoutes: readonly ResourceRoute[] = [
  {
    type: 'returns',
    methods: {
      GET: { handle: readReturns },
      POST: { attributes: { store: isText, returnItems: isFilledList }, handle: createReturn },
    },
  },
  {
    type: 'return-reasons',
    methods: {
      GET: {
        handle: () =>
          answerMany(
            returnReasons.map((reason) => ({ type: 'return-reasons', id: null, attributes: { reason } })),
          ),
      },
    },
  },
];

function readReturns(call: ResourceCall) {
  const own = [...call.state.returns.values()].filter((each) => each.owner === call.user.reference);
  if (!call.id) return answerMany(own.map(showReturn));
  const found = own.find((each) => each.reference === call.id);
  if (found === undefined) refuse('returnNotFound');
  return answerOne(showReturn(found));
}

/** Every item must be of one of the caller's orders, delivered, and named once. */
function createReturn(call: ResourceCall) {
  const wanted = call.attributes.returnItems as readonly Attributes[];
  const items = wanted.map((each) => returnableItem(call, textOf(each ?? {}, 'salesOrderItemUuid')));
  if (new Set(items).size !== items.length) refuse('returnRefused');
  const created: Return = {
    reference: `${call.user.reference}-R${nextNumber(call.state)}`,
    owner: call.user.reference,
    store: textOf(call.attributes, 'store'),
    items: items.map((item, at) => ({
      uuid: newId(),
      orderItemUuid: item.uuid,
      reason: textOf(wanted[at] ?? {}, 'reason'),
      refund: item.refundableAmount,
    })),
  };
  for (const item of items) item.state = 'waiting for return';
  call.state.returns.set(created.reference, created);
  return answerOne(showReturn(created), 201);
}

function returnableItem(call: ResourceCall, uuid: string): OrderItem {
  const isOwn = (order: Order) => order.owner === call.user.reference;
  const items = [...call.state.orders.values()].filter(isOwn).flatMap((order) => order.items);
  const item = items.find((each) => each.uuid === uuid);
  if (item === undefined || item.state !== 'delivered') refuse('returnRefused');
  return item;
}

function showReturn({ reference, store, owner, items }: Return): Resource {
  const refundTotal = items.reduce((total, item) => total + item.refund, 0);
  const attributes = {
    returnReference: reference,
    store,
    customerReference: owner,
    returnTotals: { refundTotal },
  };
  return { type: 'returns', id: reference, attributes };
}

export function showReturnItems({ reference, items }: Return): Resource[] {
  return items.map(({ uuid, orderItemUuid, reason, refund }) => ({
    type: 'return-items',
    id: uuid,
    self: `/returns/${reference}/return-items/${uuid}`,
    attributes: { uuid, orderItemUuid, reason, refund },
  }));
}
