/** The contract's table of protected endpoints, as it stands there: group, method, path. */
const table = `
| Customers | GET | /customers/<customer_reference> |
| Customers | PATCH | /customers/<customer_id>/addresses/<address_id> |
| Customers | DELETE | /customers/<customer_id>/addresses/<address_id> |
| Customers | GET | /customers/<customer_id>/addresses |
| Customers | POST | /customers/<customer_id>/addresses |
| Customers | GET | /customers/<customer_id> |
| Customers | PATCH | /customers/<customer_id> |
| Customers (anonymize) | DELETE | /customers/<customer_id> |
| Customer password | PATCH | /customer-password/<customer_password_id> |
| Cart codes (add code) | GET | /carts/<cart_id>/cart-codes |
| Cart codes (delete code) | DELETE | /carts/<cart_id>/cart-codes/<code> |
| Carts | GET | /carts/<cart_id> |
| Carts | PATCH | /carts/<cart_id> |
| Carts | DELETE | /carts/<cart_id> |
| Carts (list) | GET | /carts |
| Carts (create) | POST | /carts |
| Cart items (add) | POST | /carts/<cart_id>/items |
| Cart items (update quantity) | PATCH | /carts/<cart_id>/items/<item_id> |
| Cart items (remove) | DELETE | /carts/<cart_id>/items/<item_id> |
| Companies | GET | /companies/<company_id> |
| Companies (collection) | GET | /companies |
| Company business unit addresses | GET | /company-business-unit-addresses/<company_business_unit_address_id> |
| Company business unit addresses (collection) | GET | /company-business-unit-addresses |
| Company roles | GET | /company-roles/<company_role_id> |
| Company roles (collection) | GET | /company-roles |
| Company user access token (create) | POST | /company-user-access-tokens |
| Company users | GET | /company-users/<company_user_id> |
| Company users (list) | GET | /company-users |
| Orders | GET | /orders/<order_id> |
| Orders (list) | GET | /orders |
| Product reviews (create) | POST | /abstract-products/<abstract_product_id>/product-reviews |
| Refresh tokens (revoke) | DELETE | /refresh-tokens/<refresh_token_id> |
| Returns | GET | /returns/<return_id> |
| Returns (list) | GET | /returns |
| Returns (create) | POST | /returns |
| Shared carts (share cart) | POST | /carts/<cart_id>/shared-carts |
| Shared carts (update permission group) | PATCH | /shared-carts/<shared_cart_id> |
| Shared carts (delete sharing) | DELETE | /shared-carts/<shared_cart_id> |
| Shopping list items (add) | POST | /shopping-lists/<shopping_list_id>/shopping-list-items |
| Shopping list items (update) | PATCH | /shopping-lists/<shopping_list_id>/shopping-list-items |
| Shopping list items (delete) | DELETE | /shopping-lists/<shopping_list_id>/shopping-list-items |
| Shopping lists | GET | /shopping-lists/<shopping_list_id> |
| Shopping lists | PATCH | /shopping-lists/<shopping_list_id> |
| Shopping lists | DELETE | /shopping-lists/<shopping_list_id> |
| Shopping lists (list) | GET | /shopping-lists |
| Shopping lists (create) | POST | /shopping-lists |
| Up-selling products for a cart | GET | /carts/<cart_id>/up-selling-products |
| Vouchers (add code to cart) | POST | /carts/<cart_id>/vouchers |
| Vouchers (delete code from cart) | DELETE | /carts/<cart_id>/vouchers/<voucher_code> |
| Wishlist items (add) | POST | /wishlists/<wishlist_id>/wishlist-items |
| Wishlist items (remove) | DELETE | /wishlists/<wishlist_id>/wishlist-items/<wishlist_item_id> |
| Wishlists | GET | /wishlists/<wishlist_id> |
| Wishlists (update) | PATCH | /wishlists/<wishlist_id> |
| Wishlists (remove) | DELETE | /wishlists/<wishlist_id> |
| Wishlists (list) | GET | /wishlists |
| Wishlists (create) | POST | /wishlists |
`;

export interface ContractRow {
  readonly group: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** With the contract's placeholders written as ours. */
  readonly template: string;
}

export const contractRows: readonly ContractRow[] = table
  .trim()
  .split('\n')
  .map((line) => {
    const [group = '', method, path = ''] = line
      .split('|')
      .map((cell) => cell.trim())
      .slice(1);
    return { group, method: method as ContractRow['method'], template: path.replace(/<(\w+)>/g, '{$1}') };
  });
