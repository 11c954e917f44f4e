/** What the demo shop keeps in memory. Amounts are integer cents. */

export type Locale = 'en' | 'de';
export type Localized = Readonly<Record<Locale, string>>;
export type PriceMode = 'GROSS_MODE' | 'NET_MODE';

export type Address = {
  readonly id: string;
  salutation: string;
  firstName: string;
  lastName: string;
  address1: string;
  address2: string;
  address3: string | null;
  company: string | null;
  city: string;
  zipCode: string;
  iso2Code: string;
  phone: string | null;
  isDefaultShipping: boolean;
  isDefaultBilling: boolean;
};

export type Customer = {
  readonly reference: string;
  readonly idCustomer: number;
  email: string;
  /** `salt:hash`, both hex; empty after the customer was anonymised. */
  passwordHash: string;
  salutation: string;
  firstName: string;
  lastName: string;
  gender: string | null;
  dateOfBirth: string | null;
  readonly createdAt: string;
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

export type SharedCart = {
  readonly id: string;
  readonly cartId: string;
  readonly idCompanyUser: string;
  idCartPermissionGroup: number;
};

export type OrderItem = {
  readonly uuid: string;
  readonly sku: string;
  readonly name: string;
  readonly quantity: number;
  readonly unitPrice: number;
  readonly sumPrice: number;
  readonly refundableAmount: number;
  readonly merchantReference: string;
  state: 'paid' | 'shipped' | 'delivered' | 'waiting for return';
};

export type OrderTotals = {
  readonly expenseTotal: number;
  readonly discountTotal: number;
  readonly taxTotal: number;
  readonly subtotal: number;
  readonly grandTotal: number;
  readonly canceledTotal: number;
  readonly remunerationTotal: number;
};

export type Order = {
  readonly reference: string;
  readonly owner: string;
  readonly createdAt: string;
  readonly currency: string;
  readonly priceMode: PriceMode;
  readonly totals: OrderTotals;
  readonly items: OrderItem[];
  readonly billingAddress: Partial<Address>;
  readonly shippingAddress: Partial<Address>;
  readonly shipmentMethod: string;
  readonly paymentMethod: string;
  readonly discounts: readonly Discount[];
};

export type Discount = {
  readonly displayName: string;
  readonly amount: number;
  readonly code: string | null;
};

export type Return = {
  readonly reference: string;
  readonly owner: string;
  readonly store: string;
  readonly items: readonly {
    readonly uuid: string;
    readonly orderItemUuid: string;
    readonly reason: string;
    readonly refund: number;
  }[];
};

export type ListItem = { readonly id: string; readonly sku: string; quantity: number };

/** A wishlist or a shopping list. */
export type ProductList = {
  readonly id: string;
  readonly owner: string;
  name: string;
  items: ListItem[];
  readonly createdAt: string;
  updatedAt: string;
};

export type Review = {
  readonly id: string;
  readonly abstractSku: string;
  readonly author: string;
  readonly rating: number;
  readonly summary: string;
  readonly description: string;
  readonly nickname: string;
  /** A review is shown once somebody in the back office has approved it. */
  approved: boolean;
};
