import { z } from 'zod';
import { duration, pathTemplate, text } from '../values.ts';

const field = (description: string) => text().optional().meta({ description });

/** Names of the fields in requests and responses, by format. */
const fieldNames = {
  'json-api': {
    accessToken: 'accessToken',
    refreshToken: 'refreshToken',
    expiresIn: 'expiresIn',
    refreshExpiresIn: 'refreshExpiresIn',
  },
  form: {
    accessToken: 'access_token',
    refreshToken: 'refresh_token',
    expiresIn: 'expires_in',
    refreshExpiresIn: 'refresh_expires_in',
  },
} as const;

const endpoint = z
  .strictObject({
    kind: z.enum(['issue', 'exchange', 'revoke']).meta({
      description:
        "What it does: `issue` gives a first pair of tokens, `exchange` a new pair for a refresh token, `revoke` ends the token whose id is the path's last parameter (`mine`: all of the user's), which takes a row that names its user; or, where the path does not end in a `{name}`, the token that the body shows (RFC 7009, and other products' logout), whosever it is.",
    }),
    method: z.enum(['POST', 'PUT', 'PATCH', 'DELETE']).meta({ description: 'Method of the endpoint.' }),
    path: pathTemplate().meta({ description: 'Path of the endpoint.' }),
    format: z.enum(['json-api', 'form']).default('json-api').meta({
      description:
        "Whose errors it speaks: `json-api` the shop's own; `form` those of RFC 6749, and its `grant_type` says whether a request refreshes. Either takes JSON and forms, where they are plain.",
    }),
    fields: z
      .strictObject({
        accessToken: field('Name of the field with the access token.'),
        refreshToken: field(
          'Name of the field with the refresh token, wherever it stands in the JSON or form: a request has to spell it so; in an answer case, `_` and `-` do not count. Of a `revoke` endpoint with the format `form` it is `token`, unless another is given.',
        ),
        expiresIn: field("Name of the field with the access token's lifetime in seconds."),
        refreshExpiresIn: field("Name of the field with the refresh token's lifetime in seconds."),
      })
      .prefault({})
      .meta({ description: 'Names of the fields; left out: the usual ones of the format.' }),
  })
  .transform(({ fields, ...row }) => ({
    ...row,
    fields: {
      accessToken: fields.accessToken ?? fieldNames[row.format].accessToken,
      refreshToken: fields.refreshToken ?? tokenFieldOf(row),
      expiresIn: fields.expiresIn ?? fieldNames[row.format].expiresIn,
      refreshExpiresIn: fields.refreshExpiresIn ?? fieldNames[row.format].refreshExpiresIn,
    },
  }));

/** RFC 7009 section 2.1 has a name of its own for it. */
function tokenFieldOf({ kind, format }: { readonly kind: string; readonly format: keyof typeof fieldNames }) {
  return kind === 'revoke' && format === 'form' ? 'token' : fieldNames[format].refreshToken;
}

type EndpointInput = z.input<typeof endpoint>;

const shopEndpoints: EndpointInput[] = [
  { kind: 'issue', method: 'POST', path: '/access-tokens' },
  { kind: 'issue', method: 'POST', path: '/company-user-access-tokens' },
  { kind: 'issue', method: 'POST', path: '/agent-access-tokens' },
  { kind: 'exchange', method: 'POST', path: '/refresh-tokens' },
  { kind: 'revoke', method: 'DELETE', path: '/refresh-tokens/{refresh_token_id}' },
  { kind: 'issue', method: 'POST', path: '/token', format: 'form' },
  { kind: 'exchange', method: 'POST', path: '/token', format: 'form' },
];

export const refreshTokens = z
  .union([
    z.literal(false),
    z.strictObject({
      endpoints: z.array(endpoint).prefault(shopEndpoints).meta({
        description:
          'Where tokens are issued, refreshed and revoked. One path may both issue and refresh: it refreshes when the request carries a refresh token. `[]`: none.',
      }),
      lifetime: duration({ from: '1s', to: '36500d' }).prefault('2628000s').meta({
        description: 'Lifetime of a refresh token when the shop names none.',
      }),
      retention: z
        .union([duration({ from: '0s', to: '36500d' }), z.literal('keep')])
        .prefault('keep')
        .meta({ description: 'How long a token is remembered after its expiry; `keep`: for good.' }),
      replay: z.enum(['refuse', 'forward', 'end-family']).default('refuse').meta({
        description:
          'What becomes of a used token that comes again (RFC 9700 section 4.14.2), besides a 401 with code `004`. `refuse`: nothing. `end-family`: every token that descends from the same login is ended. `forward`: the shop is asked, so that a provider can detect the reuse; a success is withheld, and ends the family.',
      }),
      leeway: duration({ from: '0s', to: '60s' }).prefault('0s').meta({
        description:
          'How long a used token gets the same answer again, for two tabs and lost answers; `0s`: never. The answer is kept sealed with a key that only the token yields.',
      }),
      digestKey: text().min(16).optional().meta({
        secret: true,
        description:
          'Key of the digests that stand in the store for tokens and users; without it names of users can be found out by trying. A change makes every token unknown.',
      }),
    }),
  ])
  .prefault({})
  .meta({ description: "The life cycle of refresh tokens. `false`: it is the shop's alone." });
