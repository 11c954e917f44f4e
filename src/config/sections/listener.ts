import { z } from 'zod';
import { extensionMethods, methods } from '../../http/canonical-request.ts';
import { errorFormats, type RejectionName, rejectionTable } from '../../http/rejection.ts';
import { defaultAdmin } from '../defaults.ts';
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
  text,
  trustableField,
} from '../values.ts';

/** RFC 9325 section 4.2, with the same for CHACHA20. */
const forwardSecretCiphers = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
];

export const listen = z
  .strictObject({
    host: listenHost().default('0.0.0.0').meta({ description: 'Address of the public listener.' }),
    port: port().default(8080).meta({ description: 'Port of the public listener; 0 takes a free one.' }),
    keepAliveTimeout: duration().prefault('75s').meta({
      description:
        "How long an idle connection of a client stays open. Longer than the load balancer's own idle time, or it meets closed connections.",
    }),
    maxConnections: z.int().min(1).max(1_000_000).optional().meta({
      description:
        'Connections of clients at once, of one process; the one that is idle the longest makes room for another. Left out: what the limit of open files leaves beside the upstream, Redis, files and the admin port, 10000 at most.',
    }),
    drainDelay: duration({ from: '0s', to: '10m' }).prefault('1s').meta({
      description:
        'After SIGTERM `/readyz` says 503 at once; for this long requests are still taken, so that balancers can look elsewhere first. A little longer than they take to notice.',
    }),
    tls: z
      .strictObject({
        cert: filePath().meta({ description: 'PEM file with the certificate chain.' }),
        key: filePath().meta({ description: 'PEM file with the private key.' }),
        minVersion: z
          .enum(['TLSv1.2', 'TLSv1.3'])
          .default('TLSv1.2')
          .meta({ description: 'Oldest version of TLS that a handshake may agree on.' }),
        ciphers: text().default(forwardSecretCiphers.join(':')).meta({
          description:
            'Suites of TLS 1.2, in the names of OpenSSL and separated by colons; those of TLS 1.3 are always good. The default ones have forward secrecy and authenticated encryption.',
        }),
      })
      .optional()
      .meta({
        description:
          'Serve HTTPS. Left out: plain HTTP, for a listener behind a front that ends TLS. Both files are followed: a renewed pair is served to new connections.',
      }),
  })
  .prefault({})
  .meta({ description: 'The public listener, where clients of the shop arrive.' });

export const admin = z
  .union([
    z.literal(false),
    z.strictObject({
      host: listenHost().default(defaultAdmin.host).meta({
        description: 'Address of the admin port. Off loopback, `token` and `hosts` are required.',
      }),
      port: port()
        .default(defaultAdmin.port)
        .meta({ description: 'Port of the admin listener; 0 takes a free one.' }),
      edit: z
        .boolean()
        .default(false)
        .meta({ description: 'Whether the console may write the protected list.' }),
      token: text()
        .regex(/^[\x21-\x7e]+$/, { error: 'must be of visible ASCII characters' })
        .optional()
        .meta({
          secret: true,
          description:
            'Bearer token for everything but `/livez` and `/readyz`. Best taken from a file or a variable.',
        }),
      hosts: distinct(listenHost()).prefault([]).meta({
        description:
          "Names, besides loopback's own, by which the admin port may be addressed (the `Host` field).",
      }),
    }),
  ])
  .prefault({})
  .meta({ description: 'Health, metrics and console, on a port of its own. `false`: none of them.' });

export const workers = z
  .union([z.int().min(1).max(256), z.literal('auto')])
  .default(1)
  .meta({
    description:
      'Processes that serve: a number, or `auto` for one a core. More than one needs a shared store.',
  });

export const request = z
  .strictObject({
    encodedSlash: distinct(pathTemplate()).prefault([]).meta({
      description:
        'Path templates in whose parameters an encoded slash (`%2F`) may stand. Such a path is matched twice, as it is and with a slash there, and the stricter row counts. Elsewhere it is refused.',
    }),
    ignoredPrefixes: distinct(path()).prefault(['/index.php']).meta({
      description: 'Prefixes that the shop ignores: paths are matched with and without them.',
    }),
    versionSegments: z.boolean().default(true).meta({
      description:
        'A first segment of letters, or none, and a number (`v1`, `1.0`, `v0.42`) may be a version that the shop drops before it routes; in a Spryker shop `getPathVersionResolving()` and `getPathVersionPrefix()`. Paths are matched with and without it, and so are rows that begin with one: `GET /orders` also protects `/v1/orders`, `GET /v1/orders` also `/orders` and `/v2/orders`. A change of a tracked resource must use the path of `entityTags.resources` exactly: where clients say `/v1/carts`, name that one. `false` where first segments such as `shop1` and `shop2` are different things.',
    }),
    itemForms: z.boolean().default(true).meta({
      description:
        'A row that ends in a name also covers one id after it: `GET /carts/{id}/up-selling-products` also `/carts/17/up-selling-products/x`, since a Spryker shop takes paths for pairs of type and id and runs the same action, whatever id stands there. A row that is written for that path and method says itself what holds there. `false` where the list alone should say it.',
    }),
    methods: distinct(z.enum(extensionMethods)).prefault([]).meta({
      description:
        'Methods that are taken beside GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS; any other is refused with 405. A row of the list holds for them whatever its own method, so that a list that was written without them loses nothing. They count as changes: of a tracked resource they take its lease, and its tag becomes a new one.',
    }),
    formatSuffixes: distinct(
      z.string().regex(/^(?:\*|[A-Za-z0-9]{1,16})$/, { error: 'must be an extension such as json, or *' }),
    )
      .prefault([])
      .meta({
        description:
          'Extensions that the shop cuts off the end of a path (Rails and older Spring do, Spryker does not), such as `json`: then `GET /orders` also protects `/orders.json`. `*` is every extension. A change of a tracked member whose id ends in one is refused, since it may be two members.',
      }),
  })
  .prefault({})
  .meta({ description: 'How request targets are read.' });

export const trustedProxies = distinct(cidr()).prefault([]).meta({
  description:
    'Addresses of peers whose `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Request-Id` are believed.',
});

export const trustedFields = distinct(trustableField()).prefault([]).meta({
  description:
    'More fields that are believed of those peers, and otherwise dropped, such as `CF-Connecting-IP`.',
});

export const limits = z
  .strictObject({
    requestHeaders: size({ from: 1024, to: 1024 ** 2 })
      .prefault('64KiB')
      .meta({
        description: 'All fields of a request together, with the request line; more is refused with 431.',
      }),
    requestBody: size({ from: 0 }).prefault('2MiB').meta({
      description: 'Body of a request; more is refused with 413.',
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
              'Path template, with `**` at its end for all that lies below it. Only the path as it is written meets it, no other spelling.',
          }),
          requestBody: size({ from: 0 }).optional().meta({
            description:
              'In place of `limits.requestBody`. What must be here whole (`wholeBody`) keeps that bound, and every request has five minutes to arrive.',
          }),
          responseTimeout: duration().optional().meta({
            description:
              'In place of `upstream.responseTimeout`, not for WebSockets. A write to a tracked resource and a call of a token endpoint may only have less.',
          }),
        }),
      )
      .prefault([])
      .meta({
        description:
          'Other limits for some routes, whether the protected list names them or not. Of several that a request meets the smallest value counts. Who gets in is not decided here.',
      }),
    wholeBody: size({ from: 1024 }).prefault('128KiB').meta({
      description:
        'Body of a request that must be here whole before it is forwarded (a write to a tracked resource, a call of a token endpoint): it is kept in memory; more is refused with 413.',
    }),
    bodyTimeout: duration({ from: '1s', to: '10m' }).prefault('20s').meta({
      description:
        'How long a request body may keep its reader waiting beyond what its bytes account for (`bodyRate`): then 408.',
    }),
    bodyRate: size({ from: 1 }).prefault('500B').meta({
      description:
        'Bytes of a request body that account for a second of waiting: its least rate in the long run.',
    }),
    trackedResponse: size({ to: 64 * 1024 ** 2 })
      .prefault('1MiB')
      .meta({
        description: 'Body of a response that may get an entity tag; a longer one passes without a tag.',
      }),
    inFlight: z.int().min(1).max(1_000_000).default(2000).meta({
      description: 'Requests under way at once in one process; more are refused with 503.',
    }),
    clientShare: z.int().min(1).max(100).default(50).meta({
      description:
        'Percent of `inFlight` that one client may hold (its address behind `trustedProxies`, an IPv6 network of 64 bits, and the subject of its access token), of the places of request bodies that still arrive (half of `upstream.connections`), and of `listen.maxConnections` that one peer may hold unless it is one of `trustedProxies`. 100: no bound. Where all clients come through a balancer that `trustedProxies` does not name, they are one.',
    }),
    eventLoopStall: z
      .union([duration({ from: '1s', to: '5m' }), z.literal('none')])
      .prefault('5s')
      .meta({
        description:
          'How long the event loop may stand still. A process whose event loop does is logged with what it was doing (`event-loop-stuck`) and ended, so that its supervisor starts another one. `none`: nobody watches it.',
      }),
  })
  .prefault({})
  .meta({ description: 'What one request, and all of them, may take.' });

const responseField = (what: string) =>
  z.string().regex(/^[A-Za-z0-9-]{1,100}$/, { error: `must be the name of a field that pages may ${what}` });

export const cors = z
  .strictObject({
    origins: distinct(
      z.string().regex(/^(?:\*|https?:\/\/[a-z0-9.[\]:_-]+)$/, {
        error:
          'must be an origin as browsers send it (https://shop.example, in lower case, without a path), or * alone',
      }),
    )
      .prefault([])
      .meta({
        description:
          'Origins whose browsers may call; `*` alone: every origin, without cookies (an access token in `Authorization` is no cookie). Empty: preflights go to the shop.',
      }),
    credentials: z.boolean().optional().meta({
      description:
        'Whether pages may send cookies. Left out: yes for named origins; never with `*`, which browsers would refuse.',
    }),
    methods: distinct(z.enum([...methods, ...extensionMethods]))
      .optional()
      .meta({
        description: `Methods that a preflight allows. Left out: ${methods.join(', ')}.`,
      }),
    fields: distinct(responseField('send')).optional().meta({
      description:
        'Request fields that a preflight allows. Left out: those that clients of such an API send, and whatever the preflight asks for.',
    }),
    exposedFields: distinct(responseField('read'))
      .prefault(['ETag', 'Location', 'WWW-Authenticate', 'Retry-After', 'X-Request-Id'])
      .meta({
        description:
          "Response fields that pages may read; those that the shop's own `Access-Control-Expose-Headers` names are added.",
      }),
    maxAge: duration({ from: '0s', to: '24h' })
      .prefault('10m')
      .meta({ description: 'How long browsers may keep the answer to a preflight.' }),
  })
  .check((context) => {
    const { origins, credentials } = context.value;
    if (!origins.includes('*')) return;
    const refuse = (message: string, key: string) =>
      context.issues.push({ code: 'custom', message, path: [key], input: context.value });
    if (origins.length > 1) refuse('has * and other origins: * is every origin, and stands alone', 'origins');
    if (credentials === true)
      refuse(
        'must not be true with the origin *: every page could act with the cookies of its visitors',
        'credentials',
      );
  })
  .prefault({})
  .meta({
    description: "Cross-origin fields. With origins set they are shopward's to answer, on every response.",
  });

export const log = z
  .strictObject({
    level: z
      .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
      .default('info')
      .meta({ description: 'Least important line that is written.' }),
  })
  .prefault({})
  .meta({ description: 'The log: one JSON line an event on standard output, pretty on a terminal.' });

const override = z
  .strictObject({
    status: z.int().min(400).max(599).optional().meta({ description: 'HTTP status.' }),
    code: text().optional().meta({ description: 'Application error code.' }),
    detail: text().optional().meta({ description: 'Human-readable text.' }),
  })
  .optional();

const names = Object.keys(rejectionTable) as RejectionName[];
const shape = Object.fromEntries(
  names.map((name) => {
    const { status, detail } = rejectionTable[name];
    return [name, override.meta({ description: `${status}: ${detail}` })];
  }),
) as Record<RejectionName, typeof override>;

export const errors = z
  .strictObject({
    format: z
      .enum([...errorFormats, 'negotiate'])
      .default('jsonapi')
      .meta({
        description:
          'Form of the body of a refusal: `jsonapi` (`application/vnd.api+json`, as the shop writes it), `problem` (`application/problem+json`, RFC 9457), `json` (flat), or `negotiate`: the one that `Accept` prefers, `jsonapi` where it prefers none. Status, `code` and `detail` are the same in all.',
      }),
    typeBase: z
      .string()
      .regex(/^https?:\/\/[\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e]+$/, {
        error: 'must be an address such as https://docs.shop.example/reasons#, without spaces',
      })
      .optional()
      .meta({
        description:
          'Address of your copy of docs/reasons.md, up to the `#` and with it: the name of the refusal is appended to it as its `type`, and as a link into `jsonapi`. Left out: `type` is `urn:shopward:reason:` and the name; `jsonapi` has none.',
      }),
  })
  .prefault({})
  .meta({ description: 'How refusals are written.' });

export const rejections = z.strictObject(shape).prefault({}).meta({
  description:
    'Other status, code or detail for a rejection, by its name: `{ access-token-missing: { status: 403 } }`.',
});
