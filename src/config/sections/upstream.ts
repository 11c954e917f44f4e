import { z } from 'zod';
import { parseRedisUrl, type RedisAddress } from '../../redis/redis-url.ts';
import { defaultUrls } from '../defaults.ts';
import { duration, filePath, originUrl, section, text, upstreamUrl } from '../values.ts';

export const publicUrl = originUrl.optional().meta({
  description:
    'Public address of the API, as links and DPoP proofs name it. Left out: scheme and `Host` of the request.',
});

const pems = {
  ca: filePath.optional().meta({
    description: 'PEM file with the authorities that are trusted. Left out: those of the system.',
  }),
  cert: filePath.optional().meta({ description: 'PEM file with a client certificate.' }),
  key: filePath.optional().meta({ description: 'PEM file with its private key.' }),
};

function needPair({ value, issues }: z.core.ParsePayload<{ cert?: unknown; key?: unknown }>): void {
  if ((value.cert === undefined) === (value.key === undefined)) return;
  const missing = value.cert === undefined ? 'cert' : 'key';
  const message = 'is needed as well: a client certificate has a private key';
  issues.push({ code: 'custom', message, path: [missing], input: value });
}

export const upstream = section({
  url: upstreamUrl.prefault('http://127.0.0.1:9000').meta({
    description:
      "Scheme, host and port of the shop's API; perhaps a path such as `/api`, which is put in front of every path. Rows and settings leave it out.",
    reference: defaultUrls.upstream,
  }),
  forwardHost: z.boolean().optional().meta({
    description:
      'Whether the shop gets the `Host` of the client. `false`: the host of `url`. Left out: `true` only with `request.profile: spryker`, since that shop makes links from it.',
  }),
  rewriteLocation: z.boolean().default(true).meta({
    description:
      'Whether `publicUrl`, else a path without a host, replaces the address of `url` in `Location` and `Content-Location`. Bodies, `Link`, `Refresh` and cookies are unchanged.',
  }),
  connectTimeout: duration().prefault('2s').meta({
    description: 'Longest wait for a connection to the shop: then 504, or 503 if all are busy.',
  }),
  responseTimeout: duration().prefault('60s').meta({
    description:
      'Longest wait for the shop: until the answer begins (then 504), and between two parts of it (then it is cut). Raise it for event streams, here or in `limits.routes`.',
  }),
  connections: z.int().min(1).max(65_535).default(256).meta({
    description: 'Connections to the shop per process. Requests with an unfinished body use at most half.',
  }),
  idleTimeout: duration({ to: '10m' }).prefault('4s').meta({
    description:
      "How long an idle connection to the shop may be used again: less than the shop's own idle time-out. A `Keep-Alive: timeout` of the shop, less one second, replaces this.",
  }),
  connectionLifetime: duration({ to: '24h' }).prefault('60s').meta({
    description: 'How long a connection takes new requests; after this time all use a changed DNS record.',
  }),
  tls: z
    .strictObject({
      ...pems,
      serverName: text
        .regex(/^(?=.{1,253}$)[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/, { error: 'must be a host name' })
        .optional()
        .meta({ description: 'Server name that is sent (SNI) and checked. Left out: the host of `url`.' }),
    })
    .check(needPair)
    .optional()
    .meta({ description: 'TLS to the shop, for `https`.' }),
  via: z.boolean().default(false).meta({
    description: 'Whether to add `Via` to requests; nginx does not compress answers to such requests.',
  }),
  webSocket: z.boolean().default(false).meta({
    description:
      'Whether WebSocket upgrades are forwarded, under the same list. `false`: `Upgrade` is ignored.',
  }),
}).meta({ description: 'The shop.' });

export const store = section({
  url: z.string().transform(readStoreAddress).prefault('memory').meta({
    description:
      '`memory` (one process), `redis://[user:password@]host[:port][/db]`, `redis+cluster://h1,h2` or `redis+sentinel://h1,h2/name[/db]`; `rediss` for TLS.',
    reference: defaultUrls.store,
  }),
  timeout: duration({ to: '60s' }).prefault('500ms').meta({
    description: 'Longest wait for one operation of the store.',
  }),
  tls: z
    .strictObject(pems)
    .check(needPair)
    .optional()
    .meta({ description: "For `rediss`. Left out: the system's authorities are trusted." }),
  sentinelPassword: text.optional().meta({ description: 'Password of the Sentinels themselves.' }),
  replicas: z.int().min(0).max(16).default(0).meta({
    description:
      'Redis replicas that must confirm a claim (`WAIT`) before its write is forwarded; fewer: 503. With three nodes set 1.',
  }),
  prefix: text
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, { error: 'may have letters, digits, `.`, `_` and `-`' })
    .default('shopward')
    .meta({ description: 'Prefix of every key. Shops and stages that share a Redis need different ones.' }),
}).meta({ description: 'Where entity tags, refresh tokens, counts and purges are kept.' });

/** A parsed `store.url`. */
type StoreAddress = { readonly kind: 'memory' } | RedisAddress;

function readStoreAddress(value: string, context: z.core.$RefinementCtx): StoreAddress {
  if (value === 'memory') return { kind: 'memory' };
  try {
    return parseRedisUrl(value);
  } catch (cause) {
    context.addIssue(cause instanceof Error ? cause.message.replace(/^store\.url:? /, '') : 'is malformed');
    return { kind: 'memory' };
  }
}
