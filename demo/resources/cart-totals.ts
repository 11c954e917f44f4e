import { findOffer, unitPriceOf } from '../data/catalogue.ts';
import { cartRules, giftCards, type Voucher, vouchers } from '../data/promotions.ts';
import type { Cart, Discount, PriceMode } from '../entities.ts';

export type PricedItem = {
  readonly sku: string;
  readonly quantity: number;
  readonly unitPrice: number;
  readonly sumPrice: number;
  readonly discount: number;
  readonly tax: number;
  readonly taxRate: number;
  readonly priceToPay: number;
};

export type PricedCart = {
  readonly items: readonly PricedItem[];
  readonly discounts: readonly Discount[];
  readonly totals: {
    readonly expenseTotal: number;
    readonly discountTotal: number;
    readonly taxTotal: number;
    readonly subtotal: number;
    readonly grandTotal: number;
    /** The grand total less what gift cards pay. */
    readonly priceToPay: number;
  };
};

/** Every amount of a cart from its items and codes; nothing of it is stored. */
export function priceCart(cart: Cart): PricedCart {
  const lines = cart.items.map((item) => {
    const product = findOffer(item.sku)?.product;
    const unitPrice = product === undefined ? 0 : unitPriceOf(product, cart.currency, cart.priceMode);
    return { ...item, unitPrice, sumPrice: unitPrice * item.quantity, taxRate: product?.taxRate ?? 0 };
  });
  const subtotal = sum(lines.map((line) => line.sumPrice));
  const discounts = discountsOf(subtotal, cart.codes);
  const discountTotal = sum(discounts.map((discount) => discount.amount));
  const shares = distribute(
    discountTotal,
    lines.map((line) => line.sumPrice),
  );
  const items = lines.map((line, at) => {
    const discount = shares[at] ?? 0;
    const remaining = line.sumPrice - discount;
    const tax = taxOf(remaining, line.taxRate, cart.priceMode);
    const priceToPay = cart.priceMode === 'GROSS_MODE' ? remaining : remaining + tax;
    return { ...line, discount, tax, priceToPay };
  });
  const grandTotal = sum(items.map((item) => item.priceToPay));
  const paidByGiftCards = Math.min(grandTotal, sum(giftCardsOf(cart.codes).map((card) => card.value)));
  const taxTotal = sum(items.map((item) => item.tax));
  const priceToPay = grandTotal - paidByGiftCards;
  return {
    items,
    discounts,
    totals: { expenseTotal: 0, discountTotal, taxTotal, subtotal, grandTotal, priceToPay },
  };
}

export function giftCardsOf(codes: readonly string[]) {
  return giftCards.filter((card) => codes.includes(card.code));
}

export function vouchersOf(codes: readonly string[]): readonly Voucher[] {
  return codes.flatMap((code) => vouchers.filter((voucher) => voucher.code === code));
}

/** Each is taken off the subtotal, in order, and none of them below zero. */
function discountsOf(subtotal: number, codes: readonly string[]): Discount[] {
  const rules = cartRules
    .filter((rule) => subtotal >= rule.fromSubtotal)
    .map((rule) => ({
      displayName: rule.displayName,
      amount: percentOf(subtotal, rule.percent),
      code: null,
    }));
  const fromVouchers = vouchersOf(codes).map((voucher) => ({
    displayName: voucher.displayName,
    amount: voucher.percent === undefined ? (voucher.amount ?? 0) : percentOf(subtotal, voucher.percent),
    code: voucher.code,
  }));
  let left = subtotal;
  const discounts: Discount[] = [];
  for (const discount of [...rules, ...fromVouchers]) {
    const amount = Math.min(left, discount.amount);
    left -= amount;
    if (amount > 0) discounts.push({ ...discount, amount });
  }
  return discounts;
}

/** Shares in proportion whose sum is exact: each line takes its part of what is left. */
function distribute(amount: number, weights: readonly number[]): number[] {
  let leftAmount = amount;
  let leftWeight = sum(weights);
  return weights.map((weight) => {
    const share = leftWeight === 0 ? 0 : Math.round((leftAmount * weight) / leftWeight);
    leftAmount -= share;
    leftWeight -= weight;
    return share;
  });
}

function taxOf(amount: number, rate: number, mode: PriceMode): number {
  return Math.round(mode === 'GROSS_MODE' ? (amount * rate) / (100 + rate) : (amount * rate) / 100);
}

function percentOf(amount: number, percent: number): number {
  return Math.round((amount * percent) / 100);
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + amount, 0);
}
