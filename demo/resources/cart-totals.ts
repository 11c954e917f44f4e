import { findOffer, unitPriceOf } from '../data/products.ts';
import { cartRules, giftCards, vouchers } from '../data/promotions.ts';
import type { Cart, PriceMode } from '../data/seeds.ts';

type Discount = { readonly displayName: string; readonly amount: number; readonly code: string | null };

/** Every amount of a cart from its items and codes; nothing of it is stored. */
export function priceCart(cart: Cart) {
  const lines = cart.items.map((item) => {
    const product = findOffer(item.sku)?.product;
    const unitPrice = product === undefined ? 0 : unitPriceOf(product, cart.currency, cart.priceMode);
    return { ...item, unitPrice, sumPrice: unitPrice * item.quantity, taxRate: product?.taxRate ?? 0 };
  });
  const subtotal = sum(lines.map((line) => line.sumPrice));
  const codes = cart.codes.map(({ id }) => id);
  const discounts = discountsOf(subtotal, codes);
  const discountTotal = sum(discounts.map((discount) => discount.amount));
  let leftAmount = discountTotal;
  let leftWeight = subtotal;
  const items = lines.map((line) => {
    // Shares in proportion whose sum is exact: each line takes its part of what is left.
    const discount = leftWeight === 0 ? 0 : Math.round((leftAmount * line.sumPrice) / leftWeight);
    leftAmount -= discount;
    leftWeight -= line.sumPrice;
    const remaining = line.sumPrice - discount;
    const tax = taxOf(remaining, line.taxRate, cart.priceMode);
    const priceToPay = cart.priceMode === 'GROSS_MODE' ? remaining : remaining + tax;
    return { ...line, discount, tax, priceToPay };
  });
  const grandTotal = sum(items.map((item) => item.priceToPay));
  const cards = giftCards.filter((card) => codes.includes(card.code));
  const paidByGiftCards = Math.min(grandTotal, sum(cards.map((card) => card.value)));
  const taxTotal = sum(items.map((item) => item.tax));
  const priceToPay = grandTotal - paidByGiftCards;
  /** What is to be paid is the grand total less what gift cards pay. */
  const totals = { expenseTotal: 0, discountTotal, taxTotal, subtotal, grandTotal, priceToPay };
  return { items, discounts, totals };
}

/** Each is taken off the subtotal, in order, and none of them below zero. */
function discountsOf(subtotal: number, codes: readonly string[]): Discount[] {
  const rules = cartRules.filter((rule) => subtotal >= rule.fromSubtotal);
  const given = codes.flatMap((code) => vouchers.filter((voucher) => voucher.code === code));
  const wanted = [...rules, ...given].map(({ displayName, code = null, percent, amount = 0 }) => {
    return { displayName, amount: percent ? Math.round((subtotal * percent) / 100) : amount, code };
  });
  let left = subtotal;
  const discounts: Discount[] = [];
  for (const discount of wanted) {
    const amount = Math.min(left, discount.amount);
    left -= amount;
    if (amount > 0) discounts.push({ ...discount, amount });
  }
  return discounts;
}

function taxOf(amount: number, rate: number, mode: PriceMode): number {
  return Math.round(mode === 'GROSS_MODE' ? (amount * rate) / (100 + rate) : (amount * rate) / 100);
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + amount, 0);
}
