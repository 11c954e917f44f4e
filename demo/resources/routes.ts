import type { ResourceRoute } from '../http/resource.ts';
import { cartRoutes } from './carts.ts';
import { catalogueRoutes } from './catalogue.ts';
import { customerRoutes } from './customers.ts';
import { listRoutes } from './lists.ts';
import { orderRoutes } from './orders.ts';
import { tokenRoutes } from './tokens.ts';
import { urlResolverRoute } from './url-resolver.ts';

/** Everything that the shop answers. */
export const routes: readonly ResourceRoute[] = [
  ...[...customerRoutes, ...cartRoutes, ...orderRoutes, ...listRoutes, ...catalogueRoutes, ...tokenRoutes],
  urlResolverRoute,
];
