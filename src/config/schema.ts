import { z } from 'zod';
import { auth } from './sections/auth.ts';
import { entityTags } from './sections/entity-tags.ts';
import { authorize, limits, listen, request, trustedFields, trustedProxies } from './sections/listener.ts';
import { admin, log, rollout, telemetry, workers } from './sections/operation.ts';
import { rateLimits } from './sections/rate-limits.ts';
import { refreshTokens } from './sections/refresh-tokens.ts';
import { cors, errors, rejections } from './sections/responses.ts';
import { publicUrl, store, upstream } from './sections/upstream.ts';
import { urlResolver } from './sections/url-resolver.ts';
import { filePath, path } from './values.ts';

/**
 * The whole configuration: the one source of validation, types, the editor's JSON Schema and docs/configuration.md. Durations
 * are parsed into milliseconds, sizes into bytes.
 */
export const configSchema = z.strictObject({
  mode: z.enum(['enforce', 'observe']).default('enforce').meta({
    description:
      '`observe` logs and counts refusals of tokens, preconditions and rate limits, but forwards the request.',
  }),
  listen,
  admin,
  workers,
  request,
  publicUrl,
  upstream,
  trustedProxies,
  trustedFields,
  authorize,
  store,
  protectedResources: filePath.default('protected-resources.yaml').meta({
    description: 'File with the protected list, relative to this file.',
  }),
  protectedResourcesPath: path.prefault('/protected-resources').meta({
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
  telemetry,
});

type DeepReadonly<T> = T extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

/** Sections whose changes take effect without a restart. */
export const hotSections = ['mode', 'rateLimits', 'log'] as const;

/** The configuration as the loader returns it: validated, complete and frozen, with milliseconds and bytes. */
export type Config = DeepReadonly<z.output<typeof configSchema>>;
/** A configuration with problems: invalid sections are missing. */
export type PartialConfig = { readonly [Key in keyof Config]?: Config[Key] | undefined };
