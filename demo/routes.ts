import type { ResourceRoute } from './http/call.ts';
import { addressRoutes } from './resources/addresses.ts';
import { cartCodeRoutes } from './resources/cart-codes.ts';
import { cartItemRoutes } from './resources/cart-items.ts';
import { cartRoutes } from './resources/carts.ts';
import { catalogSearchRoutes } from './resources/catalog-search.ts';
import { categoryRoutes } from './resources/categories.ts';
import { checkoutRoutes } from './resources/checkout.ts';
import { companyRoutes } from './resources/companies.ts';
import { customerRoutes } from './resources/customers.ts';
import { guestCartRoutes } from './resources/guest-carts.ts';
import { orderRoutes } from './resources/orders.ts';
import { productRoutes } from './resources/products.ts';
import { returnRoutes } from './resources/returns.ts';
import { reviewRoutes } from './resources/reviews.ts';
import { sharedCartRoutes } from './resources/shared-carts.ts';
import { shoppingListItemRoutes } from './resources/shopping-list-items.ts';
import { shoppingListRoutes } from './resources/shopping-lists.ts';
import { storeRoutes } from './resources/stores.ts';
import { tokenRoutes } from './resources/tokens.ts';
import { urlResolverRoutes } from './resources/url-resolver.ts';
import { wishlistRoutes } from './resources/wishlists.ts';

/** Everything that the shop answers. */
export const routes: readonly ResourceRoute[] = [
  ...customerRoutes,
  ...addressRoutes,
  ...cartRoutes,
  ...cartItemRoutes,
  ...cartCodeRoutes,
  ...sharedCartRoutes,
  ...guestCartRoutes,
  ...orderRoutes,
  ...checkoutRoutes,
  ...returnRoutes,
  ...wishlistRoutes,
  ...shoppingListRoutes,
  ...shoppingListItemRoutes,
  ...companyRoutes,
  ...reviewRoutes,
  ...productRoutes,
  ...catalogSearchRoutes,
  ...categoryRoutes,
  ...urlResolverRoutes,
  ...storeRoutes,
  ...tokenRoutes,
];
