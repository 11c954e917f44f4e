import {
  addressIds,
  businessUnitAddressIds,
  cartIds,
  companyIds,
  companyRoleIds,
  companyUserIds,
  leavingCustomerReference as lea,
  shoppingListIds as listIds,
  shoppingListItemIds as listItemIds,
  orderIds,
  orderItemIds,
  returnIds,
  seedPassword,
  sharedCartIds,
  defaultCustomerReference as sonia,
  wishlistIds,
} from '../../../demo/data/ids.ts';

/** One request that the shop grants, for one row of the contract's list of protected endpoints. */
export type ContractCall = {
  readonly group: string;
  /** The row, placeholders in braces. */
  readonly row: string;
  readonly method: string;
  readonly path: string;
  /** Customer reference of the token to send. */
  readonly as: string;
  /** A JSON:API body. */
  readonly body?: object;
  /** Status of the shop without shopward. */
  readonly status: number;
};

const nora = 'DE--23';
const address = {
  ...{ salutation: 'Ms', firstName: 'Sonia', lastName: 'Wagner', address1: 'Marktplatz', address2: '4' },
  ...{ zipCode: '80331', city: 'Munich', iso2Code: 'DE' },
};
const password = { password: seedPassword, newPassword: 'change1234', confirmPassword: 'change1234' };
const cart = { name: 'New cart', priceMode: 'GROSS_MODE', currency: 'EUR', store: 'DE' };
const review = { rating: 5, summary: 'Light', description: 'Carries well.', nickname: 'Sonia' };
const returned = {
  store: 'DE',
  returnItems: [{ salesOrderItemUuid: orderItemIds.camera, reason: 'Damaged' }],
};
const sharing = { idCompanyUser: companyUserIds.karl, idCartPermissionGroup: 1 };
const listItems = 'shopping-list-items';

/** Request line, ids for its placeholders, status, and the attributes or the whole body. */
type Row = readonly [line: string, ids: readonly string[], status: number, attributes?: object];

const everyday = [cartIds.everyday];
const listItemsOf = 'shopping-lists/{shopping_list_id}/shopping-list-items';

const groups: Readonly<Record<string, readonly Row[]>> = {
  Customers: [
    ['GET /customers/{customer_reference}', [sonia], 200],
    [
      'PATCH /customers/{customer_id}/addresses/{address_id}',
      [sonia, addressIds.home],
      200,
      { city: 'Starnberg' },
    ],
    ['DELETE /customers/{customer_id}/addresses/{address_id}', [sonia, addressIds.summerHouse], 204],
    ['GET /customers/{customer_id}/addresses', [sonia], 200],
    ['POST /customers/{customer_id}/addresses', [sonia], 201, address],
    ['GET /customers/{customer_id}', [sonia], 200],
    ['PATCH /customers/{customer_id}', [sonia], 200, { firstName: 'Sonja' }],
  ],
  'Customers (anonymize)': [['DELETE /customers/{customer_id}', [lea], 204]],
  'Customer password': [['PATCH /customer-password/{customer_password_id}', [nora], 204, password]],
  'Cart codes (add code)': [['GET /carts/{cart_id}/cart-codes', [cartIds.celebration], 200]],
  'Cart codes (delete code)': [
    ['DELETE /carts/{cart_id}/cart-codes/{code}', [cartIds.celebration, 'GIFT-50'], 204],
  ],
  Carts: [
    ['GET /carts/{cart_id}', everyday, 200],
    ['PATCH /carts/{cart_id}', [cartIds.office], 200, { name: 'Office, floor 2' }],
    ['DELETE /carts/{cart_id}', [cartIds.forgotten], 204],
  ],
  'Carts (list)': [['GET /carts', [], 200]],
  'Carts (create)': [['POST /carts', [], 201, cart]],
  'Cart items (add)': [['POST /carts/{cart_id}/items', everyday, 201, { sku: '301_4711', quantity: 1 }]],
  'Cart items (update quantity)': [
    ['PATCH /carts/{cart_id}/items/{item_id}', [...everyday, '209_12554247'], 200, { quantity: 3 }],
  ],
  'Cart items (remove)': [['DELETE /carts/{cart_id}/items/{item_id}', [...everyday, '218_1233'], 204]],
  Companies: [['GET /companies/{company_id}', [companyIds.harbourHotel], 200]],
  'Companies (collection)': [['GET /companies', [], 200]],
  'Company business unit addresses': [
    [
      'GET /company-business-unit-addresses/{company_business_unit_address_id}',
      [businessUnitAddressIds.reception],
      200,
    ],
  ],
  'Company business unit addresses (collection)': [['GET /company-business-unit-addresses', [], 200]],
  'Company roles': [['GET /company-roles/{company_role_id}', [companyRoleIds.admin], 200]],
  'Company roles (collection)': [['GET /company-roles', [], 200]],
  'Company user access token (create)': [
    ['POST /company-user-access-tokens', [], 201, { idCompanyUser: companyUserIds.sonia }],
  ],
  'Company users': [['GET /company-users/{company_user_id}', [companyUserIds.sonia], 200]],
  'Company users (list)': [['GET /company-users', [], 200]],
  Orders: [['GET /orders/{order_id}', [orderIds.delivered], 200]],
  'Orders (list)': [['GET /orders', [], 200]],
  'Product reviews (create)': [
    ['POST /abstract-products/{abstract_product_id}/product-reviews', ['134'], 202, review],
  ],
  'Refresh tokens (revoke)': [['DELETE /refresh-tokens/{refresh_token_id}', ['mine'], 204]],
  Returns: [['GET /returns/{return_id}', [returnIds.seeded], 200]],
  'Returns (list)': [['GET /returns', [], 200]],
  'Returns (create)': [['POST /returns', [], 201, returned]],
  'Shared carts (share cart)': [['POST /carts/{cart_id}/shared-carts', everyday, 201, sharing]],
  'Shared carts (update permission group)': [
    ['PATCH /shared-carts/{shared_cart_id}', [sharedCartIds.withKarl], 200, { idCartPermissionGroup: 2 }],
  ],
  'Shared carts (delete sharing)': [['DELETE /shared-carts/{shared_cart_id}', [sharedCartIds.withNora], 204]],
  'Shopping list items (add)': [
    [`POST /${listItemsOf}`, [listIds.desk], 201, { sku: '209_12554247', quantity: 2 }],
  ],
  'Shopping list items (update)': [
    [
      `PATCH /${listItemsOf}`,
      [listIds.weekly],
      200,
      { data: { type: listItems, id: listItemIds.paper, attributes: { quantity: 7 } } },
    ],
  ],
  'Shopping list items (delete)': [
    [
      `DELETE /${listItemsOf}`,
      [listIds.weekly],
      204,
      { data: [{ type: listItems, id: listItemIds.stapler }] },
    ],
  ],
  'Shopping lists': [
    ['GET /shopping-lists/{shopping_list_id}', [listIds.weekly], 200],
    ['PATCH /shopping-lists/{shopping_list_id}', [listIds.desk], 200, { name: 'Desk and chair' }],
    ['DELETE /shopping-lists/{shopping_list_id}', [listIds.outdated], 204],
  ],
  'Shopping lists (list)': [['GET /shopping-lists', [], 200]],
  'Shopping lists (create)': [['POST /shopping-lists', [], 201, { name: 'New list' }]],
  'Up-selling products for a cart': [['GET /carts/{cart_id}/up-selling-products', everyday, 200]],
  'Vouchers (add code to cart)': [['POST /carts/{cart_id}/vouchers', everyday, 201, { code: 'SUMMER10' }]],
  'Vouchers (delete code from cart)': [
    ['DELETE /carts/{cart_id}/vouchers/{voucher_code}', [cartIds.celebration, 'SAVE5'], 204],
  ],
  'Wishlist items (add)': [
    ['POST /wishlists/{wishlist_id}/wishlist-items', [wishlistIds.cameras], 201, { sku: '020_21081478' }],
  ],
  'Wishlist items (remove)': [
    [
      'DELETE /wishlists/{wishlist_id}/wishlist-items/{wishlist_item_id}',
      [wishlistIds.cameras, '005_30663301'],
      204,
    ],
  ],
  Wishlists: [['GET /wishlists/{wishlist_id}', [wishlistIds.cameras], 200]],
  'Wishlists (update)': [
    ['PATCH /wishlists/{wishlist_id}', [wishlistIds.someday], 200, { name: 'Some other day' }],
  ],
  'Wishlists (remove)': [['DELETE /wishlists/{wishlist_id}', [wishlistIds.outdated], 204]],
  'Wishlists (list)': [['GET /wishlists', [], 200]],
  'Wishlists (create)': [['POST /wishlists', [], 201, { name: 'New wishes' }]],
};

/**
 * All rows in the order of the contract. On a freshly seeded shop the calls succeed in any order, because none removes
 * what another one needs. A second round needs the seeds again.
 */
export const contractCalls: readonly ContractCall[] = Object.entries(groups).flatMap(([group, rows]) =>
  rows.map((row) => ({ group, ...toCall(row) })),
);

/** Fills the placeholders with the ids, in order. If the first id is a customer, the token is that customer's. */
function toCall([row, ids, status, given]: Row): Omit<ContractCall, 'group'> {
  const [method = '', template = ''] = row.split(' ');
  const left = [...ids];
  const path = template.replace(/\{\w+\}/g, () => left.shift() ?? '');
  const as = [nora, lea].find((customer) => ids[0] === customer) ?? sonia;
  const bodiless = { row, method, path, as, status };
  if (given === undefined) return bodiless;
  const type = template.split('/').findLast((segment) => !segment.startsWith('{'));
  return { ...bodiless, body: 'data' in given ? given : { data: { type, attributes: given } } };
}

/** Group, method and path template of each row. */
export const contractRows = contractCalls.map(({ group, row }) => {
  const [method = '', template = ''] = row.split(' ');
  return { group, method, template };
});
