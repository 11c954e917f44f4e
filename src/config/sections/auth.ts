import { z } from 'zod';
import { isObject } from '../../lib/json.ts';
import { distinct, duration, filePath, identityField, originUrl, text } from '../values.ts';

const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
  'HS256',
  'HS384',
  'HS512',
] as const;

/** Where keys come from: exactly one of them. */
export type KeysConfig =
  | { readonly jwks: string }
  | { readonly files: readonly string[] }
  | { readonly secret: string }
  | { readonly discover: true };

const urlText = 'must be an http:// or https:// URL without user and fragment';
/** Of an identity provider. */
const providerUrl = z
  .string()
  .regex(/^https?:\/\/[^\s/@?#]+(\/[^\s@?#]*)?(\?[^\s#]*)?$/i, { error: urlText, abort: true })
  .refine(URL.canParse, { error: urlText });

const keys = z
  .strictObject({
    jwks: providerUrl.optional().meta({ description: "URL of the shop's JSON Web Key Set." }),
    files: distinct(filePath()).min(1).optional().meta({
      description: 'Files with public keys: PEM, JWK or JWK set.',
    }),
    secret: text().optional().meta({
      secret: true,
      description:
        'Shared secret for HS256, HS384 or HS512, at least as long as the hash. Taken from a file it is followed: tokens of the old one are refused from then on.',
    }),
    discover: z.literal(true).optional().meta({
      description:
        "The issuer's metadata say where its key set is (RFC 8414, else OpenID Connect Discovery): asked for with each fetch of the keys, and only believed where they name this very `issuer`. The key set is at `https://`, or at the issuer's own origin.",
    }),
  })
  .transform((given, context): KeysConfig => {
    const { jwks, files, secret, discover } = given;
    const count = [jwks, files, secret, discover].filter((one) => one !== undefined).length;
    if (count !== 1) context.addIssue('must hold exactly one of jwks, files, secret and discover');
    if (jwks !== undefined) return { jwks };
    if (discover !== undefined) return { discover };
    return files !== undefined ? { files } : { secret: secret ?? '' };
  });

const keysText =
  'Keys that access tokens are verified with: exactly one of `jwks`, `files`, `secret` and `discover`.';

const introspection = z.strictObject({
  url: providerUrl.meta({ description: 'Introspection endpoint of the issuer.' }),
  clientId: text().meta({ description: 'Name by which shopward is known there.' }),
  clientSecret: text().meta({
    secret: true,
    description:
      'Password that goes with it, sent as Basic credentials (RFC 6749 section 2.3.1). Taken from a file it is followed.',
  }),
  timeout: duration({ to: '30s' }).prefault('2s').meta({
    description: 'For one answer; then the request is 503.',
  }),
  ttl: duration({ from: '0s', to: '1h' }).prefault('30s').meta({
    description:
      'How long an active token is believed without another question, and never beyond its `exp`: for so long a revoked token still works. `0s`: each request asks.',
  }),
  inactiveTtl: duration({ from: '0s', to: '5m' }).prefault('5s').meta({
    description: 'The same for a token that is not active; never longer than `ttl`.',
  }),
  maxTokens: z.int().min(1).max(1_000_000).default(10_000).meta({
    description: 'Active tokens in memory, as digests; as many again that are not active.',
  }),
  connections: z.int().min(1).max(1_000).default(16).meta({
    description:
      'Connections to the endpoint; requests beyond that wait for one within `timeout`. A quarter as many more are for tokens that were active when last asked, so that a flood of unknown ones does not hold these up.',
  }),
  requireTokenType: z.boolean().default(true).meta({
    description:
      'Only what the answer calls `token_type: Bearer` counts. `false`: an answer without a type, too; at many issuers a refresh token has none, and would then pass as an access token.',
  }),
});

const introspectionText =
  'The issuer is asked about each token that is not a JSON Web Token, or about every token where there are no `keys` (RFC 7662). Only `active: true` passes; while nobody answers, such tokens are 503.';

const pathText =
  'must be the name of a claim, such as sub or realm_access.roles, or a list of exact names, such as [https://shop.example/roles]';
const dottedPath = z.string().regex(/^[^.\s]+(\.[^.\s]+)*$/, { error: pathText });
/** Names with dots between them, or a list of names as they are: one of those may hold dots itself. */
const claimPath = z.union([dottedPath, z.array(text()).min(1).max(8)], { error: pathText });
const claimPaths = z.array(claimPath).min(1).max(16);

const forwardedIdentity = z
  .strictObject({
    subject: identityField().optional().meta({
      description: 'Field with the user whom the token names (`auth.subject`), such as `X-Auth-Subject`.',
    }),
    scopes: identityField().optional().meta({
      description: 'Field with the scopes of the token, a space between two; no field where it has none.',
    }),
    issuer: identityField().optional().meta({
      description:
        'Field with the claim `iss`; no field where the token has none. Required beside `subject` where there are several issuers, since two of them may call different users the same.',
    }),
  })
  .check((context) => {
    const names = new Set<string>();
    for (const [key, name] of Object.entries(context.value)) {
      const folded = name?.toLowerCase();
      if (folded === undefined) continue;
      if (names.has(folded)) {
        const message = 'names a field that another one names';
        context.issues.push({ code: 'custom', message, path: [key], input: name });
      }
      names.add(folded);
    }
  })
  .prefault({})
  .meta({
    description:
      'Fields by which the shop learns whom a verified token names, only where a row of the protected list asked for one. Whoever else sends such a field, on any path and in any spelling, it is dropped. What is not visible US-ASCII stands percent-encoded in UTF-8, and so do `%`, `,`, `;`, `"` and `\\`; a value of more than 2048 octets is refused with 401. Left out: the shop learns nothing of it.',
  });
const algorithmNames = distinct(z.enum(algorithms)).min(1);
const audience = z.union([text(), distinct(text()).min(1)]);
const clockTolerance = duration({ from: '0s', to: '5m' });
const maxTokenAge = z.union([duration({ to: '36500d' }), z.literal('none')]);
const subject = z.union([dottedPath, claimPaths], { error: pathText });

/** One of several issuers: what it leaves out is as in `auth`. */
const issuers = z.array(
  z.strictObject({
    issuer: text().meta({
      description:
        'Value of the claim `iss`, octet for octet: it chooses the entry, and its keys alone count.',
    }),
    name: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{0,30}$/, { error: 'must be up to 31 small letters, digits and -' })
      .optional()
      .meta({
        description:
          'For log, metrics and console, and in front of its subjects. Default: `issuer-1` and so on, by its place.',
      }),
    keys: keys.optional().meta({ description: 'Its keys, as `auth.keys`.' }),
    introspection: introspection.optional().meta({
      description: 'Its endpoint, as `auth.introspection`; of one issuer at most.',
    }),
    algorithms: algorithmNames.optional().meta({ description: 'As `auth.algorithms`.' }),
    audience: audience.optional().meta({ description: 'As `auth.audience`.' }),
    clockTolerance: clockTolerance.optional().meta({ description: 'As `auth.clockTolerance`.' }),
    maxTokenAge: maxTokenAge.optional().meta({ description: 'As `auth.maxTokenAge`.' }),
    subject: subject.optional().meta({ description: 'As `auth.subject`.' }),
    scopes: claimPaths.optional().meta({ description: 'As `auth.scopes`.' }),
  }),
);

export const auth = z
  .strictObject({
    algorithms: algorithmNames.prefault(['RS256']).meta({
      description:
        'Signature algorithms that are accepted; HS* only with `keys.secret`, the others only without.',
    }),
    keys: keys.optional().meta({ description: keysText }),
    introspection: introspection.optional().meta({ description: introspectionText }),
    issuer: text()
      .optional()
      .meta({ description: 'Required value of the claim `iss`. Left out: not checked.' }),
    audience: audience.optional().meta({
      description:
        'Required value of the claim `aud`, or several of which one must be met. Left out: not checked.',
    }),
    clockTolerance: clockTolerance.prefault('5s').meta({
      description: "How far the shop's clock may be off when `exp`, `nbf` and `iat` are checked.",
    }),
    maxTokenAge: maxTokenAge.prefault('8h').meta({
      description:
        'Oldest access token that is accepted, counted from `iat`; tokens without `iat` are then refused. `none`: only `exp` counts.',
    }),
    subject: z.union([dottedPath, claimPaths], { error: pathText }).default('sub').meta({
      description:
        'Claim that names the user; `sub.customer_reference` reaches into an object or a JSON string. Of a list the first one that the token has: `[customer_id, sub]`; a name with dots stands in a list of its own: `[[https://shop.example/id], sub]`.',
    }),
    scopes: claimPaths.prefault(['scopes', 'scope']).meta({
      description:
        'Claims that hold scopes, all together, each a text with spaces or a list: `scp`, `permissions`, `realm_access.roles`, `cognito:groups`. A dot leads into an object; a name with dots stands in a list of its own: `[scope, [https://shop.example/roles]]`.',
    }),
    cookieOrigins: distinct(originUrl()).prefault([]).meta({
      description:
        "Origins whose pages may make changes with a token in a cookie (`tokenIn: cookie:NAME` in the list), beside pages of the request's own host; needed where shopward does not know the public scheme or host.",
    }),
    forward: forwardedIdentity,
    forwardAuthorization: z.boolean().default(true).meta({
      description:
        'Whether the shop gets the verified token, as the one `Authorization` field. `false`: on rows of the protected list it is taken off; on open paths `Authorization` is passed on as it came.',
    }),
    issuers: issuers.min(1).max(16).optional().meta({
      description:
        'Several issuers at once, instead of `keys`, `introspection` and `issuer`. A token is verified by the entry of its `iss` alone. What an entry leaves out is as it stands here.',
    }),
  })
  .refine((auth) => auth?.keys ?? auth?.introspection ?? auth?.issuers, {
    error: 'is required',
    path: ['keys'],
    // Said beside whatever else is wrong.
    when: ({ value }) => isObject(value),
  })
  .meta({ description: 'How access tokens are verified.' });
