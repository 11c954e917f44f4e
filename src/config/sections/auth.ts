import { z } from 'zod';
import { isObject } from '../../lib/json.ts';
import { duration, filePath, identityField, originUrl, text } from '../values.ts';

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

type KeysConfig =
  | { readonly jwks: string }
  | { readonly files: readonly string[] }
  | { readonly secret: string }
  | { readonly discover: true };

const urlText = 'must be an http:// or https:// URL without user and fragment';
const providerUrl = z
  .string()
  .regex(/^https?:\/\/[^\s/@?#]+(\/[^\s@?#]*)?(\?[^\s#]*)?$/i, { error: urlText, abort: true })
  .refine(URL.canParse, { error: urlText });

const keys = z
  .strictObject({
    jwks: providerUrl.optional().meta({ description: "URL of the shop's JSON Web Key Set." }),
    files: z.array(filePath).min(1).optional().meta({
      description: 'Files with public keys: PEM, JWK or JWK set.',
    }),
    secret: text.optional().meta({
      description: 'Shared secret for HS256, HS384 or HS512, at least as long as the hash.',
    }),
    discover: z.literal(true).optional().meta({
      description:
        "The issuer's metadata (RFC 8414, OpenID Connect Discovery) name the key set ([rules](identity-providers.md#keys-that-are-discovered)).",
    }),
  })
  .refine((given) => Object.values(given).filter((one) => one !== undefined).length === 1, {
    error: 'must have exactly one of jwks, files, secret and discover',
  })
  .transform((given) => given as KeysConfig);

const keysText =
  'Keys that access tokens are verified with: exactly one of `jwks`, `files`, `secret` and `discover`.';

const introspection = z.strictObject({
  url: providerUrl.meta({ description: 'Introspection endpoint of the issuer.' }),
  clientId: text.meta({ description: 'Client id of shopward at the issuer.' }),
  clientSecret: text.meta({ description: 'Password of this client, sent as Basic credentials.' }),
  timeout: duration({ to: '30s' }).prefault('2s').meta({
    description:
      'Longest wait for a connection and the answer; then 503. Half of it while another client waits without a connection.',
  }),
  ttl: duration({ from: '0s', to: '1h' }).prefault('30s').meta({
    description:
      'How long the answer for an active token is used, at most until its `exp`. A revoked token works for this time. Other answers: at most 5 s. `0s`: each request asks.',
  }),
  connections: z.int().min(1).max(1_000).default(16).meta({
    description:
      'Connections to the endpoint, and a quarter as many more for tokens known as active. One client gets at most half.',
  }),
  requireTokenType: z.boolean().default(true).meta({
    description:
      'Whether the answer must have `token_type: Bearer`. With `false` a refresh token may pass as an access token.',
  }),
});

const introspectionText =
  'Asks the issuer (RFC 7662) about tokens that are not JSON Web Tokens, or about all if there are no `keys`. Without an answer: 503.';

const pathText =
  'must be the name of a claim, such as sub or realm_access.roles, or a list of exact names, such as [https://shop.example/roles]';
const dottedPath = z.string().regex(/^[^.\s]+(\.[^.\s]+)*$/, { error: pathText });
/** Names joined by dots, or a list of exact names, which may contain dots. */
const claimPath = z.union([dottedPath, z.array(text).min(1).max(8)], { error: pathText });
const tokenType = z
  .strictObject({
    header: text.optional().meta({ description: 'Parameter of the JOSE header, such as `typ`.' }),
    claim: claimPath.optional().meta({ description: 'Claim, such as `token_use`.' }),
    values: z.array(text).min(1).max(16).meta({
      description: 'An access token has one of these values, such as `[at+jwt]` or `[access]`.',
    }),
  })
  .refine(({ header, claim }) => (header === undefined) !== (claim === undefined), {
    error: 'must have exactly one of header and claim',
  });
const claimPaths = z.array(claimPath).min(1).max(16);

const forwardedIdentity = z
  .strictObject({
    subject: identityField.optional().meta({
      description: 'Field with the user of the token (`auth.subject`), such as `X-Auth-Subject`.',
    }),
    scopes: identityField.optional().meta({
      description: 'Field with the scopes of the token, separated by spaces; absent if it has none.',
    }),
    issuer: identityField.optional().meta({
      description: 'Field with the claim `iss`. With several issuers, required beside `subject`.',
    }),
  })
  .superRefine((given, context) => {
    const names = Object.values(given).map((name) => name?.toLowerCase());
    const message = 'names a field that another one names';
    for (const [index, key] of Object.keys(given).entries())
      if (names.indexOf(names[index]) < index) context.addIssue({ code: 'custom', message, path: [key] });
  })
  .prefault({})
  .meta({
    description:
      'Fields in which [the shop gets the identity](identity-providers.md#what-the-shop-learns-of-a-token) of a verified token.',
  });
const algorithmNames = z.array(z.enum(algorithms)).min(1);
const audience = z.union([text, z.array(text).min(1)]);
const clockTolerance = duration({ from: '0s', to: '5m' });
const maxTokenAge = z.union([duration({ to: '36500d' }), z.literal('none')]);
const subject = z.union([dottedPath, claimPaths], { error: pathText });

/** One of several issuers; `auth` has the defaults. */
const issuer = z.strictObject({
  issuer: text.meta({ description: 'Value of the claim `iss`, octet for octet.' }),
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,30}$/, { error: 'must be up to 31 small letters, digits and -' })
    .optional()
    .meta({
      description:
        'Name in log, metrics and console, and in front of its subjects. Default: `issuer-1` and so on.',
    }),
  keys: keys.optional().meta({ description: 'As `auth.keys`.' }),
  introspection: introspection.optional().meta({
    description: 'As `auth.introspection`; of one issuer at most.',
  }),
  algorithms: algorithmNames.optional().meta({ description: 'As `auth.algorithms`.' }),
  audience: audience.optional().meta({ description: 'As `auth.audience`.' }),
  clockTolerance: clockTolerance.optional().meta({ description: 'As `auth.clockTolerance`.' }),
  maxTokenAge: maxTokenAge.optional().meta({ description: 'As `auth.maxTokenAge`.' }),
  tokenType: tokenType.optional().meta({ description: 'As `auth.tokenType`.' }),
  subject: subject.optional().meta({ description: 'As `auth.subject`.' }),
  scopes: claimPaths.optional().meta({ description: 'As `auth.scopes`.' }),
});

export const auth = z
  .strictObject({
    algorithms: algorithmNames.prefault(['RS256']).meta({
      description:
        'Signature algorithms that are accepted. HS* need `keys.secret`; the others cannot be used with it.',
    }),
    keys: keys.optional().meta({ description: keysText }),
    introspection: introspection.optional().meta({ description: introspectionText }),
    issuer: text
      .optional()
      .meta({ description: 'Required value of the claim `iss`. Left out: not checked.' }),
    audience: audience.optional().meta({
      description:
        'Required value of the claim `aud`; of a list, the token must have one. Left out: not checked.',
    }),
    clockTolerance: clockTolerance.prefault('5s').meta({
      description: "How far the shop's clock may be off when `exp`, `nbf` and `iat` are checked.",
    }),
    maxTokenAge: maxTokenAge.prefault('8h').meta({
      description:
        'Greatest age of an access token by `iat`, which a JSON Web Token must then have. `none`: not checked.',
    }),
    tokenType: tokenType.optional().meta({
      description:
        'What marks an access token. Always refused: header `typ` other than `JWT` and `at+jwt` (unless named here); claim `typ` or `token_use` of an ID, refresh, offline or logout token; claim `events`; `nonce` with `at_hash` and no scope; `cnf` without `auth.proof`.',
    }),
    subject: subject.default('sub').meta({
      description:
        'Claim that names the user; of a list, the first that the token has. `sub.customer_reference` looks into an object or a JSON string. A name with dots: `[[https://shop.example/id], sub]`.',
    }),
    scopes: claimPaths.prefault(['scopes', 'scope']).meta({
      description:
        'Claims with scopes, such as `scp` or `realm_access.roles`: texts with spaces, or lists. All of them count. A name with dots: as in `subject`.',
    }),
    proof: z.enum(['none', 'dpop', 'mtls', 'any']).default('none').meta({
      description:
        '`dpop`: tokens with `cnf.jkt` need a DPoP proof (RFC 9449) in each request. `mtls`: tokens with `cnf.x5t#S256` need that client certificate (RFC 8705). `any`: both kinds. Tokens with another `cnf` are refused.',
    }),
    proofNonceSecret: text.min(32, { error: 'must have at least 32 characters' }).optional().meta({
      description:
        'Secret from which nonces of DPoP proofs (RFC 9449 section 9) are made, the same in all replicas. Left out: no nonces.',
    }),
    cookieOrigins: z.array(originUrl).prefault([]).meta({
      description:
        "Origins whose pages may make changes with a token in a cookie (`tokenIn: cookie:NAME`), besides the request's own host.",
    }),
    sessionCookies: z
      .array(
        z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/, { error: 'must be a name of letters, digits, _ . and -' }),
      )
      .prefault([])
      .meta({
        description:
          'Session cookies that the shop checks, such as `connect.sid`, on rows with [`credentials: shop`](protected-list.md#a-row).',
      }),
    forward: forwardedIdentity,
    forwardAuthorization: z.boolean().default(true).meta({
      description:
        'Whether the shop gets the verified token, as the only `Authorization` field. `false`: not on requests that match the protected list.',
    }),
    issuers: z.array(issuer).min(1).max(16).optional().meta({
      description:
        'Several issuers, instead of `keys`, `introspection` and `issuer`: the entry with the `iss` of a token verifies it. Its other keys default to those of `auth`.',
    }),
  })
  .refine((auth) => auth?.keys ?? auth?.introspection ?? auth?.issuers, {
    error: 'is required',
    path: ['keys'],
    // Reported together with all other problems.
    when: ({ value }) => isObject(value),
  })
  .meta({ description: 'How access tokens are verified.' });
