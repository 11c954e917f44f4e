/** `percent` of the subtotal, or a fixed `amount` in cents; a voucher has a `code`, a rule of every cart has none. */
type Promotion = {
  readonly displayName: string;
  readonly percent?: number;
  readonly amount?: number;
  readonly code?: string;
};
export type Voucher = Promotion & { readonly code: string };

export const vouchers: readonly Voucher[] = [
  { code: 'SUMMER10', displayName: '10% off in summer', percent: 10 },
  { code: 'SAVE5', displayName: '5 EUR off', amount: 500 },
  { code: 'WELCOME20', displayName: '20 EUR for new customers', amount: 2000 },
];

/** A gift card does not lower the price, it pays a part of it. */
export const giftCards = [{ code: 'GIFT-50', name: 'Gift card 50', value: 5000 }] as const;

export const cartRules: readonly (Promotion & { readonly fromSubtotal: number })[] = [
  { displayName: '10% Discount for all orders above 1000 EUR', percent: 10, fromSubtotal: 100_000 },
];

export const standardPrice = 490;
/** By the id of the method; 2 is express. */
export const shipmentPrices: ReadonlyMap<unknown, number> = new Map([
  [1, standardPrice],
  [2, 590],
]);

export const returnReasons = ['Damaged', 'Wrong item', 'No longer needed'] as const;
