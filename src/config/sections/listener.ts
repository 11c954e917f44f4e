import { z } from 'zod';
import { extensionMethods, methods } from '../../http/canonical-request.ts';
import type { PathRules } from '../../routes/path-table.ts';
import {
  cidr,
  distinct,
  duration,
  filePath,
  listenHost,
  path,
  pathTemplate,
  pathTemplateOrBelow,
  port,
  size,
  trustableField,
} from '../values.ts';

export const listen = z
  .strictObject({
    host: listenHost().default('0.0.0.0').meta({ description: 'Address of the public listener.' }),
    port: port().default(8080).meta({ description: 'Port of the public listener; 0 takes a free one.' }),
    keepAliveTimeout: duration().prefault('75s').meta({
      description:
        "How long an idle connection of a client stays open. It must be longer than the load balancer's own idle time-out, or the balancer uses connections that are already closed.",
    }),
    maxConnections: z.int().min(1).max(1_000_000).optional().meta({
      description:
        'Connections of clients at once in one process. When there are more, the one that has been idle the longest is closed. Left out: the limit of open files, less what the upstream, Redis, files and the admin port need, 10000 at most.',
    }),
    drainDelay: duration({ from: '0s', to: '10m' }).prefault('1s').meta({
      description:
        'After SIGTERM `/readyz` is 503 at once. For this time requests are still accepted, until the load balancers have noticed. Choose a little more than they need.',
    }),
    tls: z
      .strictObject({
        cert: filePath().meta({ description: 'PEM file with the certificate chain.' }),
        key: filePath().meta({ description: 'PEM file with the private key.' }),
        minVersion: z.enum(['TLSv1.2', 'TLSv1.3']).default('TLSv1.2').meta({
          description:
            'Oldest version of TLS that a handshake may agree on. The suites of TLS 1.2 are those with forward secrecy and authenticated encryption (RFC 9325 section 4.2).',
        }),
      })
      .optional()
      .meta({
        description:
          'Serves HTTPS. Left out: plain HTTP, for a listener behind a front that terminates TLS. Both files are watched: new connections get a renewed certificate.',
      }),
  })
  .prefault({})
  .meta({ description: 'The public listener, to which clients of the shop connect.' });

/** How a kind of shop reads paths (`request.profile`). */
const profiles: Readonly<Record<'spryker' | 'plain', Required<PathRules>>> = {
  spryker: {
    ignoredPrefixes: ['/index.php'],
    versionSegments: true,
    itemForms: true,
    lastPair: true,
    formatSuffixes: ['jsonapi', 'jsonld', 'xml', 'csv'],
  },
  plain: {
    ignoredPrefixes: [],
    versionSegments: false,
    itemForms: false,
    lastPair: false,
    formatSuffixes: [],
  },
};

export const request = z
  .strictObject({
    profile: z.enum(['spryker', 'plain']).optional().meta({
      description:
        'How the shop reads paths. `spryker`: the next five keys are `[/index.php]`, `true`, `true`, `true` and `[jsonapi, jsonld, xml, csv]`, and the strictest of all readings decides. `plain`: they are `[]`, `false`, `false`, `false` and `[]`, and the path as it is written decides; case, escapes, empty segments and `;params` still do not matter. A key that is set overrides its profile. Left out: as `spryker`; `shopward check` names the rows and resources that `plain` would make usable.',
    }),
    encodedSlash: distinct(pathTemplate()).prefault([]).meta({
      description:
        'Path templates whose parameters may contain an encoded slash (`%2F`). Such a path is matched twice, unchanged and with a decoded slash, and the stricter row counts. In any other path an encoded slash is refused.',
    }),
    ignoredPrefixes: distinct(path()).optional().meta({
      description:
        'Prefixes that the shop ignores: paths are matched with and without them. Left out: as `profile` says.',
    }),
    versionSegments: z.boolean().optional().meta({
      description:
        'A first segment of optional letters and a number (`v1`, `1.0`, `v0.42`) may be a version that the shop removes before it routes (in a Spryker shop: `getPathVersionResolving()` and `getPathVersionPrefix()`). Paths are matched with and without it, and so are rows that begin with one: `GET /orders` also protects `/v1/orders`, and `GET /v1/orders` also protects `/orders` and `/v2/orders`. A change of a tracked resource must use the exact path of `entityTags.resources`: if clients use `/v1/carts`, name that path there. Set `false` if first segments such as `shop1` and `shop2` are different things.',
    }),
    itemForms: z.boolean().optional().meta({
      description:
        'A row that ends in a name also covers one id after it: `GET /carts/{id}/up-selling-products` also protects `/carts/17/up-selling-products/x`. A Spryker shop reads a path as pairs of type and id, and runs the same action for any id. If the list has a row for that path and method, only that row counts. `false`: the list alone decides.',
    }),
    lastPair: z.boolean().optional().meta({
      description:
        'A row also matches as the end of a longer path: `GET /carts/{id}` also protects `/a/1/carts/17`. A Spryker shop reads a path as pairs of type and id, runs the action of the last pair, and takes any pair before it for its parent. `false`: a row matches only a whole path, so that paths below a row or a tracked resource are not read as the row itself.',
    }),
    methods: distinct(z.enum(extensionMethods)).prefault([]).meta({
      description:
        'Methods that are accepted beside GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS; any other is refused with 405. Every row applies to these methods, whatever its own method is, so a list that does not know them still protects its paths. They are safe (RFC 4918, RFC 3253, RFC 5323, RFC 10008): on a tracked resource they need no `If-Match`, and change no tag.',
    }),
    formatSuffixes: distinct(
      z.string().regex(/^(?:\*|[A-Za-z0-9]{1,16})$/, { error: 'must be an extension such as json, or *' }),
    )
      .optional()
      .meta({
        description:
          'Extensions that the shop cuts off the end of a path (API Platform in current Spryker shops, Rails and older Spring do). With `json`, `GET /orders` also protects `/orders.json`. `*` means every extension. A change of a tracked member whose id ends in such an extension is refused, because the path may mean two members.',
      }),
  })
  .transform(({ profile, ...own }) => {
    const usual = profiles[profile ?? 'spryker'];
    return {
      profile,
      ...own,
      ignoredPrefixes: own.ignoredPrefixes ?? usual.ignoredPrefixes,
      versionSegments: own.versionSegments ?? usual.versionSegments,
      itemForms: own.itemForms ?? usual.itemForms,
      lastPair: own.lastPair ?? usual.lastPair,
      formatSuffixes: own.formatSuffixes ?? usual.formatSuffixes,
    };
  })
  .prefault({})
  .meta({ description: 'How request targets are read.' });

export const trustedProxies = distinct(cidr()).prefault([]).meta({
  description:
    'Addresses of peers whose `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Request-Id` are accepted. Of `X-Forwarded-For`, the last 64 addresses are read.',
});

export const trustedFields = distinct(trustableField()).prefault([]).meta({
  description:
    'Further fields, such as `CF-Connecting-IP`, that are accepted from those peers and dropped from all others.',
});

export const limits = z
  .strictObject({
    requestHeaders: size({ from: 1024, to: 1024 ** 2 })
      .prefault('64KiB')
      .meta({
        description:
          'Size of the request line and all fields together. A larger head, and one with more than 256 fields, is refused with 431.',
      }),
    requestBody: size({ from: 0 }).prefault('2MiB').meta({
      description: 'Size of a request body; a larger one is refused with 413.',
    }),
    routes: z
      .array(
        z.strictObject({
          method: z
            .enum(['ANY', ...methods])
            .default('ANY')
            .meta({ description: 'Method, or `ANY` for all but OPTIONS.' }),
          path: pathTemplateOrBelow().meta({
            description:
              'Path template; `**` at its end stands for everything below. Only the exact path matches it, no other spelling.',
          }),
          requestBody: size({ from: 0 }).optional().meta({
            description:
              'Replaces `limits.requestBody`. A body that is read whole (`wholeBody`) keeps that limit, and no request has more than five minutes to arrive (see `bodyTimeout`).',
          }),
          responseTimeout: duration().optional().meta({
            description:
              'Replaces `upstream.responseTimeout`, except for WebSockets. For a write to a tracked resource and a request to a token endpoint it can only be shorter.',
          }),
        }),
      )
      .prefault([])
      .meta({
        description:
          'Other limits for some routes, whether the protected list names them or not. If several match a request, the smallest value counts. They do not decide who gets in.',
      }),
    wholeBody: size({ from: 1024 }).prefault('128KiB').meta({
      description:
        'Size of a request body that is read whole into memory before it is forwarded (a write to a tracked resource, a request to a token endpoint). A larger one is refused with 413.',
    }),
    bodyTimeout: duration({ from: '1s', to: '10m' }).prefault('20s').meta({
      description:
        'How long shopward waits for a request body in all. Every 500 bytes that arrive give back one second of this time. When it is used up: 408. In any case a whole request has five minutes to arrive. A client that takes a response too slowly to keep the shop sending has the same time; every 4 KiB that it takes give back one second. When it is used up, its connection is cut.',
    }),
    trackedResponse: size({ to: 64 * 1024 ** 2 })
      .prefault('1MiB')
      .meta({
        description: 'Size of a response body that may get an entity tag; a larger one passes without a tag.',
      }),
    inFlight: z.int().min(1).max(1_000_000).default(2000).meta({
      description:
        'Requests in progress at once in one process; more are refused with 503. One connection has one at a time. Up to 16 pipelined requests, with 512 fields together, wait for it. If a client sends more before it is answered, these are answered and the connection is closed.',
    }),
    clientShare: z.int().min(1).max(100).default(50).meta({
      description:
        'Percent that one client may use: of `inFlight`, of `upstream.connections` and of the queue in front of them, of the places for request bodies that are still arriving (half of `upstream.connections`), and of `listen.maxConnections` (there a peer, unless it is one of `trustedProxies`). A client is an address (behind `trustedProxies` the one that they name, of IPv6 the first 64 bits), and also the subject of an access token. 100: no limit. If all clients come through a balancer that `trustedProxies` does not name, they count as one.',
    }),
    eventLoopStall: z
      .union([duration({ from: '1s', to: '5m' }), z.literal('none')])
      .prefault('5s')
      .meta({
        description:
          'How long the event loop may be blocked. Then the log says in which function (`event-loop-stuck`), and the process is killed, so that its supervisor starts another one. `none`: it is not watched.',
      }),
  })
  .prefault({})
  .meta({ description: 'Limits of one request, and of all requests together.' });
