import { z } from 'zod';
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

/** Where keys come from: exactly one of the three. */
export type KeysConfig =
  | { readonly jwks: string }
  | { readonly files: readonly string[] }
  | { readonly secret: string };

const jwksText = 'must be an http:// or https:// URL without user and fragment';
const jwksUrl = z
  .string()
  .regex(/^https?:\/\/[^\s/@?#]+(\/[^\s@?#]*)?(\?[^\s#]*)?$/i, { error: jwksText, abort: true })
  .refine(URL.canParse, { error: jwksText });

const keys = z
  .strictObject({
    jwks: jwksUrl.optional().meta({ description: "URL of the shop's JSON Web Key Set." }),
    files: distinct(filePath()).min(1).optional().meta({
      description: 'Files with public keys: PEM, JWK or JWK set.',
    }),
    secret: text().optional().meta({
      secret: true,
      description:
        'Shared secret for HS256, HS384 or HS512, at least as long as the hash. Taken from a file it is followed: tokens of the old one are refused from then on.',
    }),
  })
  .transform((given, context): KeysConfig => {
    const { jwks, files, secret } = given;
    const count = [jwks, files, secret].filter((one) => one !== undefined).length;
    if (count !== 1) context.addIssue('must hold exactly one of jwks, files and secret');
    if (jwks !== undefined) return { jwks };
    return files !== undefined ? { files } : { secret: secret ?? '' };
  })
  .meta({
    description: 'Keys that access tokens are verified with: exactly one of `jwks`, `files` and `secret`.',
  });

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
      description: 'Field with the claim `iss`; no field where the token has none.',
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

export const auth = z
  .strictObject({
    algorithms: distinct(z.enum(algorithms)).min(1).prefault(['RS256']).meta({
      description:
        'Signature algorithms that are accepted; HS* only with `keys.secret`, the others only without.',
    }),
    keys,
    issuer: text()
      .optional()
      .meta({ description: 'Required value of the claim `iss`. Left out: not checked.' }),
    audience: z
      .union([text(), distinct(text()).min(1)])
      .optional()
      .meta({
        description:
          'Required value of the claim `aud`, or several of which one must be met. Left out: not checked.',
      }),
    clockTolerance: duration({ from: '0s', to: '5m' }).prefault('5s').meta({
      description: "How far the shop's clock may be off when `exp`, `nbf` and `iat` are checked.",
    }),
    maxTokenAge: z
      .union([duration({ to: '36500d' }), z.literal('none')])
      .prefault('8h')
      .meta({
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
  })
  .meta({ description: 'How access tokens are verified.' });
