import { findOffer } from '../data/catalogue.ts';
import { paymentMethods, shipmentMethods } from '../data/promotions.ts';
import type { Address, Cart, Order } from '../entities.ts';
import { isFilledList, isObject, isText, numberOf, objectOf, optional, textOf } from '../http/attributes.ts';
import { answerOne, type ResourceCall, type ResourceRoute } from '../http/call.ts';
import { refuse } from '../http/shop-error.ts';
import { newId, nextNumber, shopTime } from '../state.ts';
import { callerOf } from './cart-access.ts';
import { priceCart } from './cart-totals.ts';

/** Public on purpose: guests check out too. */
export const checkoutRoutes: readonly ResourceRoute[] = [
  {
    type: 'checkout',
    methods: {
      POST: {
        attributes: {
          idCart: isText,
          billingAddress: isObject,
          shippingAddress: isObject,
          payments: isFilledList,
          shipment: optional(isObject),
        },
        handle: checkOut,
      },
    },
  },
  { type: 'checkout-data', methods: { POST: { attributes: { idCart: isText }, handle: showCheckoutData } } },
];

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
  if (cart === undefined || cart.owner !== callerOf(call)) refuse('cartToOrderNotFound');
  return cart;
}

function createOrder(call: ResourceCall, cart: Cart): Order {
  const { items, totals, discounts } = priceCart(cart);
  const wanted = numberOf(objectOf(call.attributes, 'shipment'), 'idShipmentMethod');
  const shipment = shipmentMethods.find((method) => method.id === wanted) ?? shipmentMethods[0];
  const payments = call.attributes.payments as readonly Record<string, unknown>[];
  return {
    reference: `DE--${nextNumber(call.state)}`,
    owner: cart.owner,
    createdAt: shopTime(),
    currency: cart.currency,
    priceMode: cart.priceMode,
    totals: {
      expenseTotal: shipment.price,
      discountTotal: totals.discountTotal,
      taxTotal: totals.taxTotal + Math.round((shipment.price * 19) / 119),
      subtotal: totals.subtotal,
      grandTotal: totals.grandTotal + shipment.price,
      canceledTotal: 0,
      remunerationTotal: 0,
    },
    items: items.map(({ sku, quantity, unitPrice, sumPrice, priceToPay }) => ({
      uuid: newId(),
      sku,
      name: findOffer(sku)?.concrete.name ?? sku,
      quantity,
      unitPrice,
      sumPrice,
      refundableAmount: priceToPay,
      merchantReference: findOffer(sku)?.product.merchantReference ?? '',
      state: 'paid',
    })),
    billingAddress: objectOf(call.attributes, 'billingAddress') as Partial<Address>,
    shippingAddress: objectOf(call.attributes, 'shippingAddress') as Partial<Address>,
    shipmentMethod: shipment.name,
    paymentMethod: textOf(payments[0] ?? {}, 'paymentMethodName', 'Invoice'),
    discounts,
  };
}

function showCheckoutData(call: ResourceCall) {
  cartToOrder(call);
  const customer = call.state.customers.get(callerOf(call));
  const attributes = {
    addresses: customer?.addresses ?? [],
    paymentProviders: [
      { paymentProviderName: 'DummyPayment', paymentMethods: paymentMethods.map(({ method }) => method) },
    ],
    shipmentMethods: shipmentMethods.map((method) => ({ ...method, currencyIsoCode: 'EUR' })),
  };
  return answerOne({ type: 'checkout-data', id: null, attributes });
}
