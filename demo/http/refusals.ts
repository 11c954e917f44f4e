/** Status, code (absent if the shop sends none) and detail of every refusal. */
const refusals = {
  notFound: [404, null, 'Not Found'],
  idMissing: [400, null, 'Resource id is not specified.'],
  invalidBody: [400, null, 'Post data is invalid.'],
  invalidType: [400, null, 'Invalid type.'],
  accessTokenInvalid: [401, '001', 'Invalid access token.'],
  loginFailed: [401, '003', 'Failed to authenticate user.'],
  refreshFailed: [401, '004', 'Failed to refresh token.'],
  ifMatchMissing: [428, '005', 'If-Match header is missing.'],
  ifMatchInvalid: [412, '006', 'If-Match header value is invalid.'],
  loggedInAndAnonymous: [
    400,
    '005',
    "Headers request error. A user can't act as logged and not logged user at the same time.",
  ],
  anonymousIdMissing: [400, '109', 'Anonymous customer unique id is empty.'],
  cartNotFound: [404, '101', 'Cart with given uuid not found.'],
  cartItemNotFound: [404, '103', 'Item with the given group key not found in the cart.'],
  cartIdMissing: [400, '104', 'Cart uuid is missing.'],
  cartPriceModeFixed: [422, '111', 'Can’t switch price mode when there are items in the cart.'],
  storeInvalid: [422, '112', 'Store data is invalid.'],
  cartActionForbidden: [403, '115', 'Unauthorized cart action.'],
  currencyIncorrect: [422, '117', 'Currency is incorrect.'],
  priceModeIncorrect: [422, '119', 'Price mode is incorrect.'],
  cartCodeNotInCart: [422, '3301', 'Cart code not found in cart.'],
  cartCodeRefused: [422, '3302', "Cart code can't be added."],
  cartPermissionGroupNotFound: [422, '2501', 'Cart permission group not found.'],
  cartPermissionGroupUnknown: [404, '2501', 'Cart permission group not found.'],
  sharingForbidden: [403, '2701', 'Action is forbidden.'],
  cartAlreadyShared: [422, '2702', 'Failed to share a cart.'],
  sharingOutsideCompany: [403, '2703', 'Cart can be shared only with company users from same company.'],
  sharedCartNotFound: [404, '2705', 'Shared cart not found.'],
  wishlistNotFound: [404, '201', 'Can`t find wishlist.'],
  wishlistNameTaken: [422, '202', 'A wishlist with the same name already exists.'],
  wishlistItemRefused: [422, '206', 'Can`t add an item.'],
  wishlistItemNotFound: [404, '208', 'No item with provided id in wishlist.'],
  abstractProductNotFound: [404, '301', 'Abstract product is not found.'],
  concreteProductNotFound: [404, '302', 'Concrete product is not found.'],
  abstractSkuMissing: [400, '311', 'Abstract product sku is not specified.'],
  concreteSkuMissing: [400, '312', 'Concrete product sku is not specified.'],
  customerExists: [422, '400', 'Customer with this email already exists.'],
  customerNotFound: [404, '402', 'Customer not found.'],
  addressNotFound: [404, '404', 'Address was not found.'],
  passwordsDiffer: [
    422,
    '406',
    'Value in field newPassword should be identical to value in the confirmPassword field.',
  ],
  passwordWrong: [400, '408', 'Invalid password'],
  customerForbidden: [403, '411', 'Unauthorized request.'],
  termsRefused: [422, '413', 'Terms and Conditions was not accepted.'],
  storeNotFound: [404, '601', 'Store not found.'],
  categoryNodeIdInvalid: [400, '701', 'Category node id has not been specified or invalid.'],
  categoryNodeNotFound: [404, '703', "Can't find category node with the given id."],
  orderNotFound: [404, '801', "Can't find order by the given order reference."],
  ordersForbidden: [403, '802', 'Unauthorized request.'],
  cartToOrderNotFound: [422, '1103', 'Cart not found.'],
  cartToOrderEmpty: [422, '1104', 'Cart is empty.'],
  companyUserNotFound: [404, '1404', 'Company user not found'],
  shoppingListIdMissing: [400, '1501', 'Shopping list id is not specified.'],
  shoppingListNotFound: [404, '1503', 'Shopping list not found.'],
  shoppingListItemNotFound: [404, '1504', 'Shopping list item not found.'],
  shoppingListNameTaken: [422, '1506', 'Shopping list with given name already exists.'],
  shoppingListItemRefused: [422, '1508', 'Concrete product not found.'],
  companyNotFound: [404, '1801', 'Company not found.'],
  businessUnitNotFound: [404, '1901', 'Company business unit not found.'],
  businessUnitAddressNotFound: [404, '2001', 'Company business unit address not found.'],
  companyRoleNotFound: [404, '2101', 'Company role not found.'],
  urlMissing: [422, '2801', 'Url request parameter is missing.'],
  urlNotFound: [404, '2802', 'Url not found.'],
  merchantNotFound: [404, '3501', 'Merchant not found.'],
  returnRefused: [422, '3601', "Return can't be created."],
  returnNotFound: [404, '3602', "Can't find return by the given return reference."],
  cmsPageNotFound: [404, '3801', 'Cms page not found.'],
  navigationNotFound: [404, '1601', 'Navigation not found.'],
} as const satisfies Record<string, readonly [number, string | null, string]>;

export type Refusal = keyof typeof refusals;
export type ErrorObject = { readonly detail: string; readonly status: number; readonly code?: string };

export class ShopError extends Error {
  readonly errors: readonly ErrorObject[];

  constructor(errors: readonly ErrorObject[]) {
    super(errors.map((error) => error.detail).join(' '));
    this.errors = errors;
  }

  /** The last error decides, as in a real shop. */
  get status(): number {
    return this.errors.at(-1)?.status ?? 500;
  }
}

export function refuse(name: Refusal): never {
  const [status, code, detail] = refusals[name];
  throw new ShopError([code === null ? { detail, status } : { detail, status, code }]);
}

/** A `422` with code `901` for each invalid attribute. */
export function refuseAttributes(messages: readonly string[]): never {
  throw new ShopError(messages.map((detail) => ({ detail, status: 422, code: '901' })));
}

/** Refusals before the shop's JSON writer runs: plain text, as in a real shop. */
export class PlainRefusal extends Error {
  readonly status: number;

  constructor(status: number, text: string) {
    super(text);
    this.status = status;
  }
}
