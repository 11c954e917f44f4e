import { findOffer } from '../data/catalogue.ts';
import type { Cart, SharedCart } from '../entities.ts';
import type { Resource } from '../http/call.ts';
import { giftCardsOf, type PricedItem, priceCart, vouchersOf } from './cart-totals.ts';

export function isGuestCart(cart: Cart): boolean {
  return cart.owner.startsWith('anonymous:');
}

export function showCart(cart: Cart): Resource {
  const { totals, discounts } = priceCart(cart);
  const { priceMode, currency, store, name, isDefault } = cart;
  const attributes = { priceMode, currency, store, name, isDefault, totals, discounts, thresholds: [] };
  return { type: isGuestCart(cart) ? 'guest-carts' : 'carts', id: cart.id, attributes };
}

export function showCartItems(cart: Cart): Resource[] {
  const [type, parent] = isGuestCart(cart) ? ['guest-cart-items', 'guest-carts'] : ['items', 'carts'];
  return priceCart(cart).items.map((item) => ({
    type,
    id: item.sku,
    self: `/${parent}/${cart.id}/${type}/${item.sku}`,
    attributes: {
      sku: item.sku,
      quantity: item.quantity,
      groupKey: item.sku,
      abstractSku: findOffer(item.sku)?.product.sku ?? null,
      merchantReference: findOffer(item.sku)?.product.merchantReference ?? null,
      amount: null,
      productOfferReference: null,
      calculations: calculationsOf(item, cart),
      selectedProductOptions: [],
    },
  }));
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

export function showVouchers(cart: Cart): Resource[] {
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

export function showGiftCards(cart: Cart): Resource[] {
  return giftCardsOf(cart.codes).map(({ code, name, value }) => ({
    type: 'gift-cards',
    id: code,
    self: `/carts/${cart.id}/cart-codes/${code}`,
    attributes: { code, name, value, currencyIsoCode: cart.currency, actualValue: value, isActive: true },
  }));
}

export function showSharedCart(shared: SharedCart): Resource {
  const { id, idCompanyUser, idCartPermissionGroup } = shared;
  return { type: 'shared-carts', id, attributes: { idCompanyUser, idCartPermissionGroup } };
}
