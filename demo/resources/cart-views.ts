import { findOffer } from '../data/products.ts';
import type { Cart, SharedCart } from '../entities.ts';
import { pick } from '../http/collection.ts';
import type { Resource, ResourceCall } from '../http/resource.ts';
import { giftCardsOf, type PricedItem, priceCart, vouchersOf } from './cart-totals.ts';
import { showConcrete, showMerchantOf } from './products.ts';

function isGuestCart(cart: Cart): boolean {
  return cart.owner.startsWith('anonymous:');
}

export function showCart(call: ResourceCall, cart: Cart): Resource {
  const { totals, discounts } = priceCart(cart);
  const named = pick(cart, 'priceMode', 'currency', 'store', 'name', 'isDefault');
  const attributes = { ...named, totals, discounts, thresholds: [] };
  const items = () => showCartItems(call, cart);
  if (isGuestCart(cart)) {
    return { type: 'guest-carts', id: cart.id, attributes, related: { 'guest-cart-items': items } };
  }
  const sharings = [...call.state.sharedCarts.values()].filter((each) => each.cartId === cart.id);
  const related = {
    items,
    vouchers: () => showVouchers(cart),
    'gift-cards': () => showGiftCards(cart),
    'shared-carts': () => sharings.map((each) => showSharedCart(call, each)),
  };
  return { type: 'carts', id: cart.id, attributes, related };
}

function showCartItems(call: ResourceCall, cart: Cart): Resource[] {
  const isGuest = isGuestCart(cart);
  const [type, parent] = isGuest ? ['guest-cart-items', 'guest-carts'] : ['items', 'carts'];
  return priceCart(cart).items.map((item) => {
    const { sku, quantity } = item;
    const product = findOffer(sku)?.product;
    const merchantReference = product?.merchantReference ?? null;
    const concretes = { 'concrete-products': () => [showConcrete(call, sku)] };
    const merchants = { merchants: () => showMerchantOf(call, merchantReference) };
    return {
      type,
      id: sku,
      self: `/${parent}/${cart.id}/${type}/${sku}`,
      attributes: {
        ...{ sku, quantity, groupKey: sku, abstractSku: product?.sku ?? null, merchantReference },
        ...{ amount: null, productOfferReference: null },
        calculations: calculationsOf(item, cart),
        selectedProductOptions: [],
      },
      related: isGuest ? concretes : { ...concretes, ...merchants },
    };
  });
}

function calculationsOf(item: PricedItem, cart: Cart): object {
  const isGross = cart.priceMode === 'GROSS_MODE';
  const perUnit = (amount: number) => Math.round(amount / item.quantity);
  return {
    unitPrice: item.unitPrice,
    sumPrice: item.sumPrice,
    taxRate: item.taxRate,
    unitGrossPrice: isGross ? item.unitPrice : 0,
    sumGrossPrice: isGross ? item.sumPrice : 0,
    unitNetPrice: isGross ? 0 : item.unitPrice,
    sumNetPrice: isGross ? 0 : item.sumPrice,
    unitTaxAmountFullAggregation: perUnit(item.tax),
    sumTaxAmountFullAggregation: item.tax,
    sumSubtotalAggregation: item.sumPrice,
    unitSubtotalAggregation: item.unitPrice,
    unitDiscountAmountAggregation: perUnit(item.discount),
    sumDiscountAmountAggregation: item.discount,
    unitPriceToPayAggregation: perUnit(item.priceToPay),
    sumPriceToPayAggregation: item.priceToPay,
  };
}

function showVouchers(cart: Cart): Resource[] {
  const { discounts } = priceCart(cart);
  return vouchersOf(cart.codes).map(({ code, displayName }) => ({
    type: 'vouchers',
    id: code,
    self: `/${isGuestCart(cart) ? 'guest-carts' : 'carts'}/${cart.id}/vouchers/${code}`,
    attributes: {
      code,
      displayName,
      amount: discounts.find((discount) => discount.code === code)?.amount ?? 0,
      discountType: 'voucher',
      isExclusive: false,
    },
  }));
}

function showGiftCards(cart: Cart): Resource[] {
  return giftCardsOf(cart.codes).map(({ code, name, value }) => ({
    type: 'gift-cards',
    id: code,
    self: `/carts/${cart.id}/cart-codes/${code}`,
    attributes: { code, name, value, currencyIsoCode: cart.currency, actualValue: value, isActive: true },
  }));
}

export function showCodes(cart: Cart): Resource[] {
  return [...showVouchers(cart), ...showGiftCards(cart)].map((shown) => ({
    type: 'cart-codes',
    id: shown.id,
    self: `/carts/${cart.id}/cart-codes/${shown.id}`,
    attributes: { ...shown.attributes, codeType: shown.type },
  }));
}

export function showSharedCart(_: ResourceCall, shared: SharedCart): Resource {
  const attributes = pick(shared, 'idCompanyUser', 'idCartPermissionGroup');
  return { type: 'shared-carts', id: shared.id, attributes };
}
