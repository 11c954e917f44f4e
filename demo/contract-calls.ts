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
} from './data/ids.ts';

/** One request that the shop grants, for one row of the contract's list of protected endpoints. */
export type ContractCall = {
  readonly group: string;
  /** The row, placeholders in braces. */
  readonly row: string;
  readonly method: string;
  readonly path: string;
  /** Customer reference of the token to send; without a token the shop takes the default customer. */
  readonly as: string;
  /** A JSON:API body. */
  readonly body?: object;
  /** What the shop answers by itself. */
  readonly status: number;
};

const nora = 'DE--23';
const address = resource('addresses', {
  salutation: 'Ms',
  firstName: 'Sonia',
  lastName: 'Wagner',
  address1: 'Marktplatz',
  address2: '4',
  zipCode: '80331',
  city: 'Munich',
  iso2Code: 'DE',
});
const password = { password: seedPassword, newPassword: 'change1234', confirmPassword: 'change1234' };
const cart = { name: 'New cart', priceMode: 'GROSS_MODE', currency: 'EUR', store: 'DE' };
const review = { rating: 5, summary: 'Light', description: 'Carries well.', nickname: 'Sonia' };
const returned = {
  store: 'DE',
  returnItems: [{ salesOrderItemUuid: orderItemIds.camera, reason: 'Damaged' }],
};
const sharing = { idCompanyUser: companyUserIds.karl, idCartPermissionGroup: 1 };
const listItems = 'shopping-list-items';

/**
 * All rows in the contract's order. On a freshly seeded shop each call succeeds whichever others were made before:
 * none takes away what another one needs. A second round needs the seeds again.
 */
export const contractCalls: readonly ContractCall[] = [
  ...group('Customers', [
    call('GET /customers/{customer_reference}', [sonia], 200),
    call(
      'PATCH /customers/{customer_id}/addresses/{address_id}',
      [sonia, addressIds.home],
      200,
      resource('addresses', { city: 'Starnberg' }),
    ),
    call('DELETE /customers/{customer_id}/addresses/{address_id}', [sonia, addressIds.summerHouse], 204),
    call('GET /customers/{customer_id}/addresses', [sonia], 200),
    call('POST /customers/{customer_id}/addresses', [sonia], 201, address),
    call('GET /customers/{customer_id}', [sonia], 200),
    call('PATCH /customers/{customer_id}', [sonia], 200, resource('customers', { firstName: 'Sonja' })),
  ]),
  ...group('Customers (anonymize)', [{ ...call('DELETE /customers/{customer_id}', [lea], 204), as: lea }]),
  ...group('Customer password', [
    {
      ...call(
        'PATCH /customer-password/{customer_password_id}',
        [nora],
        204,
        resource('customer-password', password),
      ),
      as: nora,
    },
  ]),
  ...group('Cart codes (add code)', [call('GET /carts/{cart_id}/cart-codes', [cartIds.celebration], 200)]),
  ...group('Cart codes (delete code)', [
    call('DELETE /carts/{cart_id}/cart-codes/{code}', [cartIds.celebration, 'GIFT-50'], 204),
  ]),
  ...group('Carts', [
    call('GET /carts/{cart_id}', [cartIds.everyday], 200),
    call('PATCH /carts/{cart_id}', [cartIds.office], 200, resource('carts', { name: 'Office, floor 2' })),
    call('DELETE /carts/{cart_id}', [cartIds.forgotten], 204),
  ]),
  ...group('Carts (list)', [call('GET /carts', [], 200)]),
  ...group('Carts (create)', [call('POST /carts', [], 201, resource('carts', cart))]),
  ...group('Cart items (add)', [
    call(
      'POST /carts/{cart_id}/items',
      [cartIds.everyday],
      201,
      resource('items', { sku: '301_4711', quantity: 1 }),
    ),
  ]),
  ...group('Cart items (update quantity)', [
    call(
      'PATCH /carts/{cart_id}/items/{item_id}',
      [cartIds.everyday, '209_12554247'],
      200,
      resource('items', { quantity: 3 }),
    ),
  ]),
  ...group('Cart items (remove)', [
    call('DELETE /carts/{cart_id}/items/{item_id}', [cartIds.everyday, '218_1233'], 204),
  ]),
  ...group('Companies', [call('GET /companies/{company_id}', [companyIds.harbourHotel], 200)]),
  ...group('Companies (collection)', [call('GET /companies', [], 200)]),
  ...group('Company business unit addresses', [
    call(
      'GET /company-business-unit-addresses/{company_business_unit_address_id}',
      [businessUnitAddressIds.reception],
      200,
    ),
  ]),
  ...group('Company business unit addresses (collection)', [
    call('GET /company-business-unit-addresses', [], 200),
  ]),
  ...group('Company roles', [call('GET /company-roles/{company_role_id}', [companyRoleIds.admin], 200)]),
  ...group('Company roles (collection)', [call('GET /company-roles', [], 200)]),
  ...group('Company user access token (create)', [
    call(
      'POST /company-user-access-tokens',
      [],
      201,
      resource('company-user-access-tokens', { idCompanyUser: companyUserIds.sonia }),
    ),
  ]),
  ...group('Company users', [call('GET /company-users/{company_user_id}', [companyUserIds.sonia], 200)]),
  ...group('Company users (list)', [call('GET /company-users', [], 200)]),
  ...group('Orders', [call('GET /orders/{order_id}', [orderIds.delivered], 200)]),
  ...group('Orders (list)', [call('GET /orders', [], 200)]),
  ...group('Product reviews (create)', [
    call(
      'POST /abstract-products/{abstract_product_id}/product-reviews',
      ['134'],
      202,
      resource('product-reviews', review),
    ),
  ]),
  ...group('Refresh tokens (revoke)', [call('DELETE /refresh-tokens/{refresh_token_id}', ['mine'], 204)]),
  ...group('Returns', [call('GET /returns/{return_id}', [returnIds.seeded], 200)]),
  ...group('Returns (list)', [call('GET /returns', [], 200)]),
  ...group('Returns (create)', [call('POST /returns', [], 201, resource('returns', returned))]),
  ...group('Shared carts (share cart)', [
    call('POST /carts/{cart_id}/shared-carts', [cartIds.everyday], 201, resource('shared-carts', sharing)),
  ]),
  ...group('Shared carts (update permission group)', [
    call(
      'PATCH /shared-carts/{shared_cart_id}',
      [sharedCartIds.withKarl],
      200,
      resource('shared-carts', { idCartPermissionGroup: 2 }),
    ),
  ]),
  ...group('Shared carts (delete sharing)', [
    call('DELETE /shared-carts/{shared_cart_id}', [sharedCartIds.withNora], 204),
  ]),
  ...group('Shopping list items (add)', [
    call(
      'POST /shopping-lists/{shopping_list_id}/shopping-list-items',
      [listIds.desk],
      201,
      resource(listItems, { sku: '209_12554247', quantity: 2 }),
    ),
  ]),
  ...group('Shopping list items (update)', [
    call('PATCH /shopping-lists/{shopping_list_id}/shopping-list-items', [listIds.weekly], 200, {
      data: { type: listItems, id: listItemIds.paper, attributes: { quantity: 7 } },
    }),
  ]),
  ...group('Shopping list items (delete)', [
    call('DELETE /shopping-lists/{shopping_list_id}/shopping-list-items', [listIds.weekly], 204, {
      data: [{ type: listItems, id: listItemIds.stapler }],
    }),
  ]),
  ...group('Shopping lists', [
    call('GET /shopping-lists/{shopping_list_id}', [listIds.weekly], 200),
    call(
      'PATCH /shopping-lists/{shopping_list_id}',
      [listIds.desk],
      200,
      resource('shopping-lists', { name: 'Desk and chair' }),
    ),
    call('DELETE /shopping-lists/{shopping_list_id}', [listIds.outdated], 204),
  ]),
  ...group('Shopping lists (list)', [call('GET /shopping-lists', [], 200)]),
  ...group('Shopping lists (create)', [
    call('POST /shopping-lists', [], 201, resource('shopping-lists', { name: 'New list' })),
  ]),
  ...group('Up-selling products for a cart', [
    call('GET /carts/{cart_id}/up-selling-products', [cartIds.everyday], 200),
  ]),
  ...group('Vouchers (add code to cart)', [
    call(
      'POST /carts/{cart_id}/vouchers',
      [cartIds.everyday],
      201,
      resource('vouchers', { code: 'SUMMER10' }),
    ),
  ]),
  ...group('Vouchers (delete code from cart)', [
    call('DELETE /carts/{cart_id}/vouchers/{voucher_code}', [cartIds.celebration, 'SAVE5'], 204),
  ]),
  ...group('Wishlist items (add)', [
    call(
      'POST /wishlists/{wishlist_id}/wishlist-items',
      [wishlistIds.cameras],
      201,
      resource('wishlist-items', { sku: '020_21081478' }),
    ),
  ]),
  ...group('Wishlist items (remove)', [
    call(
      'DELETE /wishlists/{wishlist_id}/wishlist-items/{wishlist_item_id}',
      [wishlistIds.cameras, '005_30663301'],
      204,
    ),
  ]),
  ...group('Wishlists', [call('GET /wishlists/{wishlist_id}', [wishlistIds.cameras], 200)]),
  ...group('Wishlists (update)', [
    call(
      'PATCH /wishlists/{wishlist_id}',
      [wishlistIds.someday],
      200,
      resource('wishlists', { name: 'Some other day' }),
    ),
  ]),
  ...group('Wishlists (remove)', [call('DELETE /wishlists/{wishlist_id}', [wishlistIds.outdated], 204)]),
  ...group('Wishlists (list)', [call('GET /wishlists', [], 200)]),
  ...group('Wishlists (create)', [
    call('POST /wishlists', [], 201, resource('wishlists', { name: 'New wishes' })),
  ]),
];

function group(name: string, calls: readonly Omit<ContractCall, 'group'>[]): ContractCall[] {
  return calls.map((each) => ({ group: name, ...each }));
}

/** The ids stand in for the placeholders, in order. */
function call(
  row: string,
  ids: readonly string[],
  status: number,
  body?: object,
): Omit<ContractCall, 'group'> {
  const [method = '', template = ''] = row.split(' ');
  const left = [...ids];
  const path = template.replace(/\{\w+\}/g, () => left.shift() ?? '');
  const bodiless = { row, method, path, as: sonia, status };
  return body === undefined ? bodiless : { ...bodiless, body };
}

function resource(type: string, attributes: object): object {
  return { data: { type, attributes } };
}
