import { findOffer, unitPriceOf } from '../data/catalogue.ts';
import type { Cart, PriceMode } from '../data/seeds.ts';

/** Takes `percent` of the subtotal or a fixed `amount` in cents. A voucher has a `code`; a rule for large carts has none. */
type Promotion = {
  readonly displayName: string;
  readonly percent?: number;
  readonly amount?: number;
  readonly code?: string;
};

const vouchers: readonly Promotion[] = [
  { code: 'SUMMER10', displayName: '10% off in summer', percent: 10 },
  { code: 'SAVE5', displayName: '5 EUR off', amount: 500 },
  { code: 'WELCOME20', displayName: '20 EUR for new customers', amount: 2000 },
];

const largeCart = 100_000;
const largeCartRule = { displayName: '10% Discount for all orders above 1000 EUR', percent: 10 };

/** Code -> amount in cents. A gift card does not lower the price; it pays part of it. */
const giftCards: Readonly<Record<string, number>> = { 'GIFT-50': 5000 };

export const voucherCodes: readonly string[] = vouchers.map(({ code = '' }) => code);
export const cartCodes: readonly string[] = [...voucherCodes, ...Object.keys(giftCards)];

/** Computes every amount of a cart from its items and codes; none is stored. */
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
    // Proportional shares whose sum is exact: each line takes its part of the rest.
    const discount = leftWeight === 0 ? 0 : Math.round((leftAmount * line.sumPrice) / leftWeight);
    leftAmount -= discount;
    leftWeight -= line.sumPrice;
    const remaining = line.sumPrice - discount;
    const tax = taxOf(remaining, line.taxRate, cart.priceMode);
    const priceToPay = cart.priceMode === 'GROSS_MODE' ? remaining : remaining + tax;
    return { ...line, discount, tax, priceToPay };
  });
  const grandTotal = sum(items.map((item) => item.priceToPay));
  const paidByGiftCards = Math.min(grandTotal, sum(codes.map((code) => giftCards[code] ?? 0)));
  const taxTotal = sum(items.map((item) => item.tax));
  const priceToPay = grandTotal - paidByGiftCards;
  const totals = { expenseTotal: 0, discountTotal, taxTotal, subtotal, grandTotal, priceToPay };
  return { items, discounts, totals };
}

/** Each discount lowers the subtotal, in order, but never below zero. */
function discountsOf(subtotal: number, codes: readonly string[]) {
  const given = codes.flatMap((code) => vouchers.filter((voucher) => voucher.code === code));
  const granted: readonly Promotion[] = subtotal >= largeCart ? [largeCartRule, ...given] : given;
  let left = subtotal;
  return granted.flatMap(({ displayName, code = null, percent, amount: fixed = 0 }) => {
    const amount = Math.min(left, percent ? Math.round((subtotal * percent) / 100) : fixed);
    left -= amount;
    return amount > 0 ? { displayName, amount, code } : [];
  });
}

function taxOf(amount: number, rate: number, mode: PriceMode): number {
  return Math.round(mode === 'GROSS_MODE' ? (amount * rate) / (100 + rate) : (amount * rate) / 100);
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + amount, 0);
}
