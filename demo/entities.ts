/** What the demo shop keeps in memory. Amounts are integer cents. */

export type Locale = 'en' | 'de';
export type Localized = Readonly<Record<Locale, string>>;
export type PriceMode = 'GROSS_MODE' | 'NET_MODE';

type Texts<K extends string> = Readonly<Record<K, string>>;
type Amounts<K extends string> = Readonly<Record<K, number>>;

export type Address = Record<
  'salutation' | 'firstName' | 'lastName' | 'address1' | 'address2' | 'city' | 'zipCode' | 'iso2Code',
  string
> &
  Record<'address3' | 'company' | 'phone', string | null> &
  Record<'isDefaultShipping' | 'isDefaultBilling', boolean> &
  Texts<'id'>;

export type Customer = Texts<'reference' | 'createdAt'> & {
  readonly idCustomer: number;
  email: string;
  /** `salt:hash`, both hex; empty after the customer was anonymised. */
  passwordHash: string;
  salutation: string;
  firstName: string;
  lastName: string;
  gender: string | null;
  dateOfBirth: string | null;
  updatedAt: string;
  anonymized: boolean;
  addresses: Address[];
};

export type CartItem = { readonly sku: string; quantity: number };

export type Cart = {
  readonly id: string;
  /** A customer reference, or `anonymous:<id>` for a guest. */
  owner: string;
  name: string;
  priceMode: PriceMode;
  currency: string;
  store: string;
  isDefault: boolean;
  items: CartItem[];
  codes: string[];
};

export type SharedCart = Texts<'id' | 'cartId' | 'idCompanyUser'> & { idCartPermissionGroup: number };

export type OrderItem = Texts<'uuid' | 'sku' | 'name' | 'merchantReference'> &
  Amounts<'quantity' | 'unitPrice' | 'sumPrice' | 'refundableAmount'> & {
    state: 'paid' | 'shipped' | 'delivered' | 'waiting for return';
  };

export type Order = Texts<
  'reference' | 'owner' | 'createdAt' | 'currency' | 'shipmentMethod' | 'paymentMethod'
> & {
  readonly priceMode: PriceMode;
  readonly totals: Amounts<
    | ('expenseTotal' | 'discountTotal' | 'taxTotal' | 'subtotal' | 'grandTotal')
    | ('canceledTotal' | 'remunerationTotal')
  >;
  readonly items: OrderItem[];
  readonly billingAddress: Partial<Address>;
  readonly shippingAddress: Partial<Address>;
  readonly discounts: readonly Discount[];
};

export type Discount = {
  readonly displayName: string;
  readonly amount: number;
  readonly code: string | null;
};

export type Return = Texts<'reference' | 'owner' | 'store'> & {
  readonly items: readonly (Texts<'uuid' | 'orderItemUuid' | 'reason'> & Amounts<'refund'>)[];
};

export type ListItem = Texts<'id' | 'sku'> & { quantity: number };

/** A wishlist or a shopping list. */
export type ProductList = Texts<'id' | 'owner' | 'createdAt'> & {
  name: string;
  items: ListItem[];
  updatedAt: string;
};

export type Review = Texts<'id' | 'abstractSku' | 'author' | 'summary' | 'description' | 'nickname'> & {
  readonly rating: number;
  /** A review is shown once somebody in the back office has approved it. */
  approved: boolean;
};
