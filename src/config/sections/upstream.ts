import { z } from 'zod';
import { parseRedisUrl, type RedisAddress } from '../../redis/redis-url.ts';
import { referenceDefaults } from '../defaults.ts';
import { duration, filePath, originUrl, text, upstreamUrl } from '../values.ts';

export const publicUrl = originUrl().optional().meta({
  description:
    'Public address of the API: `{base_url}` of `links.self`. Left out: scheme and `Host` of the request.',
});

export const upstream = z
  .strictObject({
    url: upstreamUrl().prefault('http://127.0.0.1:9000').meta({
      description:
        "Scheme, host and port of the shop's API, and a path if the API is below one: `/api` is then put in front of every path. Rows and all other settings use the path that clients send, without this prefix. There is one upstream: put a load balancer in front of several shops (docs/deployment.md).",
      reference: referenceDefaults.upstream.url,
    }),
    forwardHost: z.boolean().optional().meta({
      description:
        'Whether the shop gets the `Host` of the client. `false`: the host of `url`. Left out: `true` with `request.profile: spryker`, whose links are made from it; set `false` if the shop answers to its own host only.',
    }),
    rewriteLocation: z.boolean().default(true).meta({
      description:
        "Whether the shop's own address (that of `url`) in `Location` and `Content-Location` is replaced by the public one: by `publicUrl`, or, if that is not set, by a path without a host. The path of `url` is removed. Addresses of other hosts are unchanged, and so are bodies, `Link`, `Refresh` and the `Path` and `Domain` of cookies. There the shop has to use the public address, which it gets in `X-Forwarded-Host` and `X-Forwarded-Proto`.",
    }),
    connectTimeout: duration().prefault('2s').meta({
      description:
        'Longest wait for a connection to the shop. Then 504, or 503 if all connections are busy. If the shop refuses the connection: 502 at once.',
    }),
    responseTimeout: duration().prefault('60s').meta({
      description: 'Longest wait for the answer of the shop, from the start of the request. Then 504.',
    }),
    connections: z.int().min(1).max(65_535).default(256).meta({
      description:
        'Connections to the shop at once in one process. One client uses at most its share (`limits.clientShare`); further requests of that client wait, and those of other clients do not. Requests whose bodies are still arriving get at most half of the connections.',
    }),
    idleTimeout: duration({ to: '10m' }).prefault('4s').meta({
      description:
        'How long an idle connection to the shop may be used again. If the shop sends `Keep-Alive: timeout`, that time less one second counts instead. A request that is not a GET or HEAD, or has a body, uses a connection that was idle for less than 250 ms, or less than the time that the shop sends; otherwise a new connection. Set it below the idle time-out of the shop.',
    }),
    connectionLifetime: duration({ to: '24h' }).prefault('60s').meta({
      description:
        'For how long a connection to the shop takes new requests (for some up to a quarter less). After this time all connections use a changed DNS record.',
    }),
    tls: z
      .strictObject({
        ca: filePath().optional().meta({
          description:
            "PEM file with the certificate authorities that are trusted for the shop's certificate. Left out: those of the system.",
        }),
        cert: filePath().optional().meta({ description: 'PEM file with a client certificate.' }),
        key: filePath().optional().meta({ description: 'PEM file with its private key.' }),
        serverName: text()
          .regex(/^(?=.{1,253}$)[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/, { error: 'must be a host name' })
          .optional()
          .meta({
            description:
              "Server name that is sent (SNI), and that the shop's certificate must contain. Left out: the host of `url`.",
          }),
      })
      .check((context) => {
        const { cert, key } = context.value;
        if ((cert === undefined) === (key === undefined)) return;
        const missing = cert === undefined ? 'cert' : 'key';
        const message = 'is needed as well: a client certificate has a private key';
        context.issues.push({ code: 'custom', message, path: [missing], input: context.value });
      })
      .optional()
      .meta({
        description:
          'TLS to the shop, for `https`. New connections use a changed file; after `connectionLifetime` all connections do. If a file cannot be used, the last good one stays in force.',
      }),
    via: z.boolean().default(false).meta({
      description:
        'Whether to add `Via` to requests. nginx in front of a shop does not compress answers to requests with `Via`.',
    }),
    webSocket: z.boolean().default(false).meta({
      description:
        'Whether WebSocket upgrades are forwarded, under the same list. `false`: `Upgrade` is ignored.',
    }),
  })
  .prefault({})
  .meta({ description: 'The shop.' });

export const store = z
  .strictObject({
    url: z
      .string()
      .transform(readStoreAddress)
      .prefault('memory')
      .meta({
        description:
          '`memory` (one process), `redis://[user:password@]host[:port][/db]`, `redis+cluster://h1,h2` or `redis+sentinel://h1,h2/name[/db]`; `rediss` for TLS.',
        reference: referenceDefaults.store.url,
        secret: ['username', 'password'],
      }),
    timeout: duration({ to: '60s' }).prefault('500ms').meta({
      description: 'Longest wait for one operation of the store.',
    }),
    tls: z
      .strictObject({
        ca: filePath()
          .optional()
          .meta({ description: "PEM file with the authority that signed Redis's certificate." }),
        cert: filePath().optional().meta({ description: 'PEM file with a client certificate.' }),
        key: filePath().optional().meta({ description: 'PEM file with its private key.' }),
      })
      .optional()
      .meta({
        description:
          "For `rediss`. Left out: the system's authorities are trusted. New connections use a changed file.",
      }),
    sentinelPassword: text()
      .optional()
      .meta({ secret: true, description: 'Password of the Sentinels themselves.' }),
    replicas: z.int().min(0).max(16).default(0).meta({
      description:
        'Number of replicas of Redis that must confirm the claim of a write or a refresh (`WAIT`) before it is forwarded. If fewer confirm: 503. With three nodes set 1.',
    }),
    prefix: text()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, { error: 'may have letters, digits, `.`, `_` and `-`' })
      .default('shopward')
      .meta({
        description: 'Prefix of every key. Shops and stages that share a Redis need different ones.',
      }),
  })
  .prefault({})
  .meta({ description: 'Where entity tags, refresh tokens and the shared mapping cache are kept.' });

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
