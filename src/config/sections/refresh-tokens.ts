import { z } from 'zod';
import { duration, onByDefault, pathTemplate, section, text } from '../values.ts';

const field = (description: string) => text.exactOptional().meta({ description });

/** The names of RFC 6749. */
const oauthNames = {
  accessToken: 'access_token',
  refreshToken: 'refresh_token',
  refreshExpiresIn: 'refresh_expires_in',
} as const;

/** Names of the fields in requests and responses, by format. */
const fieldNames = {
  'json-api': {
    accessToken: 'accessToken',
    refreshToken: 'refreshToken',
    refreshExpiresIn: 'refreshExpiresIn',
  },
  json: oauthNames,
  form: oauthNames,
} as const;

const endpoint = z
  .strictObject({
    kind: z.enum(['issue', 'exchange', 'revoke']).meta({
      description:
        '`issue` returns a first pair of tokens, `exchange` a new pair for a refresh token. `revoke` ends the token in the body (RFC 7009), or the one that a `{name}` at the end of the path names (`mine`: all tokens of the user, on a protected route).',
    }),
    method: z.enum(['POST', 'PUT', 'PATCH', 'DELETE']).meta({ description: 'Method of the endpoint.' }),
    path: pathTemplate.meta({ description: 'Path of the endpoint.' }),
    format: z.enum(['json-api', 'json', 'form']).default('json-api').meta({
      description:
        '`json-api`: JSON:API names (`refreshToken`), errors as `errors.format` says. `form` and `json`: names (`refresh_token`) and errors (`{"error":"invalid_grant"}`) of RFC 6749. `json` accepts JSON alone, the others also urlencoded forms.',
    }),
    fields: section({
      accessToken: field('Field with the access token.'),
      refreshToken: field(
        'Field with the refresh token, at any depth. Requests must use this spelling; in answers case, `_` and `-` do not matter. `token` for `revoke` with `form`.',
      ),
      refreshExpiresIn: field("Field with the refresh token's lifetime in seconds."),
    }).meta({ description: 'Names of the fields. Left out: the usual ones of the format.' }),
  })
  .transform(({ fields, ...row }) => ({
    ...row,
    fields: {
      ...fieldNames[row.format],
      ...(row.kind === 'revoke' && row.format === 'form' && { refreshToken: 'token' }),
      ...fields,
    },
  }));

const shopEndpoints: z.input<typeof endpoint>[] = [
  { kind: 'issue', method: 'POST', path: '/access-tokens' },
  { kind: 'issue', method: 'POST', path: '/company-user-access-tokens' },
  { kind: 'issue', method: 'POST', path: '/agent-access-tokens' },
  { kind: 'exchange', method: 'POST', path: '/refresh-tokens' },
  { kind: 'revoke', method: 'DELETE', path: '/refresh-tokens/{refresh_token_id}' },
  { kind: 'issue', method: 'POST', path: '/token', format: 'form' },
  { kind: 'exchange', method: 'POST', path: '/token', format: 'form' },
];

export const refreshTokens = onByDefault({
  endpoints: z.array(endpoint).prefault(shopEndpoints).meta({
    description:
      'Endpoints that issue, refresh and revoke tokens. A path may do both: with a refresh token in the request it refreshes. `[]`: none.',
  }),
  lifetime: duration({ from: '1s', to: '36500d' }).prefault('2628000s').meta({
    description: 'Lifetime of a refresh token if the answer of the shop does not contain one.',
  }),
  retention: z
    .union([duration({ from: '0s', to: '36500d' }), z.literal('keep')])
    .prefault('keep')
    .meta({ description: 'How long the state of a token is kept after it has expired. `keep`: for ever.' }),
  replay: z.enum(['refuse', 'forward', 'end-family']).optional().meta({
    description:
      'What a used token gets (RFC 9700 section 4.14.2). `refuse`: 401 `004`. `end-family`: the same, and all tokens of its login are revoked. `forward`: the provider is asked; if it accepts the token, its answer is withheld and the login ends. Left out: `refuse` for `json-api`, else `forward`.',
  }),
  leeway: duration({ from: '0s', to: '60s' }).prefault('0s').meta({
    description:
      'How long a used token gets the same answer again (two tabs, a lost answer). `0s`: never. The stored answer is encrypted.',
  }),
  shopTimeout: duration({ from: '0s', to: '1h' }).prefault('10s').meta({
    description:
      'If a refresh was cut off, how long its token is blocked (503): the shop may still exchange it.',
  }),
  digestKey: text.min(16).optional().meta({
    description:
      'Key of the digests of tokens and users in the store; without it, user names can be guessed. A new key makes every token unknown.',
  }),
}).meta({ description: 'The life cycle of refresh tokens. `false`: only the shop keeps it.' });
