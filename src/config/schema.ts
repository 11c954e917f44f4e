import { z } from 'zod';
import { auth } from './sections/auth.ts';
import { entityTags } from './sections/entity-tags.ts';
import {
  admin,
  cors,
  errors,
  limits,
  listen,
  log,
  rejections,
  request,
  trustedFields,
  trustedProxies,
  workers,
} from './sections/listener.ts';
import { rateLimits } from './sections/rate-limits.ts';
import { refreshTokens } from './sections/refresh-tokens.ts';
import { rollout } from './sections/rollout.ts';
import { publicUrl, store, upstream } from './sections/upstream.ts';
import { urlResolver } from './sections/url-resolver.ts';
import { filePath, path } from './values.ts';

/**
 * The whole configuration: one source for validation, types, the editor's JSON Schema and docs/configuration.md.
 * Keys keep their names; a duration is read as milliseconds, a size as bytes.
 */
export const configSchema = z.strictObject({
  mode: z.enum(['enforce', 'observe']).default('enforce').meta({
    description:
      '`observe` decides, logs and counts every refusal of tokens and preconditions, and forwards all the same.',
  }),
  listen,
  admin,
  workers,
  request,
  publicUrl,
  upstream,
  trustedProxies,
  trustedFields,
  store,
  protectedResources: filePath().default('protected-resources.yaml').meta({
    description: 'File with the protected list, relative to this file.',
  }),
  protectedResourcesPath: path().prefault('/protected-resources').meta({
    description: 'Path by which clients read the protected list.',
  }),
  auth,
  entityTags,
  urlResolver,
  refreshTokens,
  rateLimits,
  rollout,
  limits,
  cors,
  errors,
  rejections,
  log,
});

type DeepReadonly<T> = T extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

/** The configuration as the loader gives it: validated, complete, frozen; milliseconds and bytes. */
export type Config = DeepReadonly<z.output<typeof configSchema>>;
/** Any of its sections may be missing while there are problems. */
export type PartialConfig = { readonly [Key in keyof Config]?: Config[Key] | undefined };
