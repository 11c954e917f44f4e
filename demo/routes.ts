import type { ResourceRoute } from './http/resource.ts';
import { cartRoutes } from './resources/carts.ts';
import { customerRoutes } from './resources/customers.ts';
import { listRoutes } from './resources/lists.ts';
import { orderRoutes } from './resources/orders.ts';
import { pageRoutes } from './resources/pages.ts';
import { productRoutes } from './resources/products.ts';
import { tokenRoutes } from './resources/tokens.ts';
import { urlResolverRoutes } from './resources/url-resolver.ts';

/** Everything that the shop answers. */
export const routes: readonly ResourceRoute[] = [
  ...customerRoutes,
  ...cartRoutes,
  ...orderRoutes,
  ...listRoutes,
  ...productRoutes,
  ...pageRoutes,
  ...urlResolverRoutes,
  ...tokenRoutes,
];
