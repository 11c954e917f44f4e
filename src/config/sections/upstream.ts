import { z } from 'zod';
import { parseRedisUrl, type RedisAddress } from '../../redis/redis-url.ts';
import { duration, filePath, originUrl, text, upstreamUrl } from '../values.ts';

export const publicUrl = originUrl().optional().meta({
  description:
    'Address by which clients know the API: `{base_url}` of `links.self`. Left out: scheme and `Host` of the request.',
});

const engines = ['llhttp', 'http-proxy-3'] as const;

/** For an engine that was there in 0.1, the problem names what took its place. */
function engineText({ input }: { readonly input?: unknown }): string | undefined {
  return input === 'undici' ? 'is no longer undici: use llhttp (the default), which replaces it' : undefined;
}

export const upstream = z
  .strictObject({
    url: upstreamUrl().prefault('http://127.0.0.1:9000').meta({
      description:
        "Scheme, host and port of the shop's API, and a path where it lies below one: `/api` is put before every path that is asked for. Rows, tags and everything else here are written with the path that clients ask for, without it. There is one upstream: several shops stand behind a balancer of their own (docs/deployment.md).",
      reference: '${UPSTREAM_URL:-http://127.0.0.1:9000}',
    }),
    engine: z.enum(engines, { error: engineText }).default('llhttp').meta({
      description: 'What does the request to the shop. WebSockets always go through http-proxy-3.',
    }),
    forwardHost: z.boolean().default(false).meta({
      description: "Whether the shop sees the client's `Host`; otherwise its own.",
    }),
    rewriteLocation: z.boolean().default(true).meta({
      description:
        'Whether `Location` and `Content-Location` of the shop that name its own address (that of `url`) name the public one instead: `publicUrl`, or where that is not set a path alone, which clients read against the address that they asked. The path of `url` is taken off. Other hosts stay as they are, and so do bodies, `Link`, `Refresh` and the `Path` and `Domain` of cookies: what a shop says there it has to say for the public address, which `X-Forwarded-Host` and `X-Forwarded-Proto` tell it.',
    }),
    connectTimeout: duration().prefault('2s').meta({
      description:
        'Longest wait for a connection: then 504, or 503 while all are busy; a refused one is 502 at once.',
    }),
    responseTimeout: duration().prefault('60s').meta({
      description: 'Longest wait for the shop, from the start of the request: then 504.',
    }),
    connections: z.int().min(1).max(65_535).default(256).meta({
      description:
        'Connections to the shop at once, of one process; request bodies that still arrive get half of them at most.',
    }),
    idleTimeout: duration({ to: '10m' }).prefault('4s').meta({
      description:
        'For how long an idle connection to the shop is used again, where the shop does not say (`Keep-Alive: timeout`, less a second). What the shop shows to be shorter counts. What is not safe or has a body takes a connection that was idle for a quarter of that and 250 ms at most, or a new one.',
    }),
    connectionLifetime: duration({ to: '24h' }).prefault('60s').meta({
      description:
        'For how long a connection to the shop takes new requests (a quarter less for some): by then, a changed DNS record is followed everywhere.',
    }),
    tls: z
      .strictObject({
        ca: filePath().optional().meta({
          description:
            "PEM file with the authorities that may have signed the shop's certificate. Left out: the system's.",
        }),
        cert: filePath().optional().meta({ description: 'PEM file with a client certificate.' }),
        key: filePath().optional().meta({ description: 'PEM file with its private key.' }),
        serverName: text()
          .regex(/^(?=.{1,253}$)[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/, { error: 'must be a host name' })
          .optional()
          .meta({
            description:
              "Name that is asked for (SNI), and that the shop's certificate must have. Left out: the host of `url`.",
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
          'For `https`. A changed file is in force for every connection that is opened then, the last one within `connectionLifetime`; one that cannot be used leaves the last good one in force.',
      }),
    via: z.boolean().default(false).meta({
      description: 'Whether to add `Via`; it stops nginx shops from compressing.',
    }),
    webSocket: z.boolean().default(false).meta({
      description: 'Whether WebSocket upgrades pass, under the same list; otherwise upgrades are ignored.',
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
        reference: '${REDIS_URL:-memory}',
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
      .meta({ description: "For `rediss`. Left out: the system's authorities are trusted." }),
    sentinelPassword: text()
      .optional()
      .meta({ secret: true, description: 'Password of the Sentinels themselves.' }),
    replicas: z.int().min(0).max(16).default(0).meta({
      description:
        'Replicas of Redis that must have confirmed the claim of a write or a refresh (`WAIT`) before it is forwarded; fewer: 503. With three nodes: 1.',
    }),
    prefix: text()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, { error: 'may have letters, digits, `.`, `_` and `-`' })
      .default('shopward')
      .meta({
        description: 'Begins every key and channel. Shops and stages that share a Redis need different ones.',
      }),
    owner: text().optional().meta({
      description:
        'Name of the shop and stage whose data is kept under `prefix`. It is noted in the store: a start under another name is refused. Left out: `publicUrl` or `upstream.url` is noted, and another one only warned about.',
    }),
  })
  .prefault({})
  .meta({ description: 'Where entity tags, refresh tokens and the shared mapping cache are kept.' });

/** Where entity tags, refresh tokens and the shared mapping cache are kept. */
export type StoreAddress = { readonly kind: 'memory' } | RedisAddress;

function readStoreAddress(value: string, context: z.core.$RefinementCtx): StoreAddress {
  if (value === 'memory') return { kind: 'memory' };
  try {
    return parseRedisUrl(value);
  } catch (cause) {
    context.addIssue(cause instanceof Error ? cause.message.replace(/^store\.url:? /, '') : 'is malformed');
    return { kind: 'memory' };
  }
}
