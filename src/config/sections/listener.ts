import { z } from 'zod';
import { extensionMethods, methods } from '../../http/canonical-request.ts';
import type { PathRules } from '../../routes/path-table.ts';
import {
  cidr,
  duration,
  filePath,
  listenHost,
  offByDefault,
  path,
  pathTemplate,
  pathTemplateOrBelow,
  port,
  section,
  size,
  trustableField,
} from '../values.ts';

export const listen = section({
  host: listenHost.default('0.0.0.0').meta({ description: 'Address of the public listener.' }),
  port: port.default(8080).meta({ description: 'Its port; 0 takes a free one.' }),
  keepAliveTimeout: duration().prefault('75s').meta({
    description:
      'How long an idle connection of a client stays open: longer than the idle time-out of the load balancer.',
  }),
  maxConnections: z.int().min(1).max(1_000_000).optional().meta({
    description:
      'Client connections in one process. One more closes the longest idle one. Left out: what the limit of open files allows, 10000 at most.',
  }),
  drainDelay: duration({ from: '0s', to: '10m' }).prefault('1s').meta({
    description:
      'How long requests are still accepted after SIGTERM: longer than load balancers need to see that `/readyz` is 503.',
  }),
  tls: z
    .strictObject({
      cert: filePath.meta({ description: 'PEM file with the certificate chain.' }),
      key: filePath.meta({ description: 'PEM file with the private key.' }),
      minVersion: z.enum(['TLSv1.2', 'TLSv1.3']).default('TLSv1.2').meta({
        description: 'Oldest version of TLS. The suites of TLS 1.2 are those of RFC 9325 section 4.2.',
      }),
    })
    .optional()
    .meta({ description: 'Serves HTTPS. Left out: plain HTTP, behind a front that terminates TLS.' }),
}).meta({ description: 'The public listener.' });

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
    ignoredPrefixes: ['/index.php'], // PHP shops behind a front controller answer below it, too.
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
        'How [the shop reads paths](protected-list.md#what-a-request-matches): defaults of `ignoredPrefixes`, `versionSegments`, `itemForms`, `lastPair` and `formatSuffixes`. `spryker`: `[/index.php]`, `true`, `true`, `true`, `[jsonapi, jsonld, xml, csv]`. `plain`: `[/index.php]`, then `false` and `[]`. Left out: as `spryker`.',
    }),
    encodedSlash: z.array(pathTemplate).prefault([]).meta({
      description:
        'Path templates whose parameters may contain an encoded slash (`%2F`). Both readings are matched. Elsewhere it is refused.',
    }),
    ignoredPrefixes: z.array(path).exactOptional().meta({
      description:
        'Prefixes that the shop ignores: paths are matched with and without them. Left out: as `profile` says.',
    }),
    versionSegments: z.boolean().exactOptional().meta({
      description:
        'Whether the shop drops a first segment such as `v1` or `1.0`: `GET /orders` also protects `/v1/orders`, and the reverse.',
    }),
    itemForms: z.boolean().exactOptional().meta({
      description:
        'Whether a row that ends in a name covers one id after it: `GET /carts/{id}/up-selling-products` also protects `/carts/17/up-selling-products/x`. A row for that path replaces this.',
    }),
    lastPair: z.boolean().exactOptional().meta({
      description:
        'Whether a row also matches the end of a longer path, as a Spryker shop routes it: `GET /carts/{id}` also protects `/a/1/carts/17`.',
    }),
    methods: z.array(z.enum(extensionMethods)).prefault([]).meta({
      description:
        'Further safe methods that are accepted; every row of a path applies to them. They need no `If-Match`. Others get 405.',
    }),
    formatSuffixes: z
      .array(
        z.string().regex(/^(?:\*|[A-Za-z0-9]{1,16})$/, { error: 'must be an extension such as json, or *' }),
      )
      .exactOptional()
      .meta({
        description:
          'Extensions that the shop ignores, at most two: with `json`, `GET /orders` also protects `/orders.json`. `*`: every extension. Tracked members `17` and `17.json` are then one.',
      }),
  })
  .transform(({ profile, ...own }) => ({ profile, ...profiles[profile ?? 'spryker'], ...own }))
  .prefault({})
  .meta({ description: 'How request targets are read.' });

export const trustedProxies = z.array(cidr).prefault([]).meta({
  description:
    'Peers whose `X-Forwarded-For` (the last 64 addresses), `X-Forwarded-Proto` and `X-Request-Id` are accepted.',
});

export const trustedFields = z.array(trustableField).prefault([]).meta({
  description:
    'Further fields, such as `CF-Connecting-IP`, that are accepted only from `trustedProxies`, which must set or remove them in every request.',
});

export const authorize = offByDefault({
  listen: z
    .strictObject({
      host: listenHost.default('127.0.0.1').meta({ description: 'Address of this listener.' }),
      port: port.min(1).meta({ description: 'Its port.' }),
    })
    .meta({ description: 'Where `trustedProxies` ask, over plain HTTP; others get 403.' }),
}).meta({
  description:
    'Answers `GET /authorize` for a proxy that forwards requests itself ([how](deployment.md#behind-a-proxy-that-only-asks)).',
});

const route = z.strictObject({
  method: z
    .enum(['ANY', ...methods])
    .default('ANY')
    .meta({ description: 'Method, or `ANY` for all but OPTIONS.' }),
  path: pathTemplateOrBelow.meta({
    description: 'Path template; `**` at its end is everything below. Other spellings do not match.',
  }),
  requestBody: size({ from: 0 }).optional().meta({
    description: 'Replaces `limits.requestBody`, except for a body that is read whole (`wholeBody`).',
  }),
  responseTimeout: duration().optional().meta({
    description:
      'Replaces `upstream.responseTimeout`, except for WebSockets. Tracked writes and token endpoints can only get less.',
  }),
});

export const limits = section({
  requestHeaders: size({ from: 1024, to: 1024 ** 2 })
    .prefault('64KiB')
    .meta({
      description:
        'Size of the request line and all fields together. A larger head, or more than 256 fields: 431.',
    }),
  requestBody: size({ from: 0 }).prefault('2MiB').meta({
    description: 'Size of a request body. A larger one: 413.',
  }),
  routes: z.array(route).prefault([]).meta({
    description: 'Other limits for some routes. If several match a request, the smallest value counts.',
  }),
  wholeBody: size({ from: 1024 }).prefault('128KiB').meta({
    description:
      'Size of a body that is read whole before it is forwarded (a tracked write, a token request). A larger one: 413.',
  }),
  bodyTimeout: duration({ from: '1s', to: '10m' }).prefault('20s').meta({
    description:
      'How long shopward waits for a request body, then 408. Each 500 bytes add a second, up to five minutes in all. A client has three times as long to take a response; each 4 KiB add a second.',
  }),
  trackedResponse: size({ to: 64 * 1024 ** 2 })
    .prefault('1MiB')
    .meta({
      description:
        'Largest response body that gets a lasting entity tag. The tag of a larger member is replaced by its next read; a larger collection has none.',
    }),
  inFlight: z.int().min(1).max(1_000_000).default(2000).meta({
    description: 'Requests in progress in one process; more: 503.',
  }),
  clientShare: z.int().min(1).max(100).default(50).meta({
    description:
      'Percent of `inFlight`, `upstream.connections`, their queue, arriving bodies and `listen.maxConnections` that one client may use. A client is an address (of IPv6 the first 64 bits; behind `trustedProxies` the one that they name), and also the subject of a token. 100: no limit.',
  }),
  eventLoopStall: z
    .union([duration({ from: '1s', to: '5m' }), z.literal('none')])
    .prefault('5s')
    .meta({
      description:
        'How long the event loop may be blocked. Then the stack is logged, and the process ends. `none`: not watched.',
    }),
}).meta({ description: 'Limits of one request, and of all requests together.' });
