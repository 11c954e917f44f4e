import type { RejectionName } from '../http/rejection.ts';

/** What has to change before a refusal is enforced: the client, a setting (here or at the issuer), or one of them. */
export type Cause = 'client' | 'setting' | 'either';

type Advice = readonly [cause: Cause, next: string];

const clocks: Advice = [
  'setting',
  'The clocks of the issuer and of shopward differ: set them right, or raise `auth.clockTolerance`.',
];
const badForm: Advice = ['client', 'Let these clients send one access token as the issuer made it.'];
const badClaims: Advice = [
  'setting',
  'Let the issuer put `exp`, and times that are numbers, into its tokens.',
];

/** By reason of `access-token-invalid`. */
const tokenReasons: Readonly<Record<string, Advice>> = {
  expired: ['client', 'These clients use tokens after their end: let them refresh in time.'],
  inactive: ['client', 'These tokens were revoked or have expired: let the clients sign in again.'],
  'other-kind': ['client', 'These clients send an ID or refresh token: let them send the access token.'],
  'sender-constrained': ['client', 'These tokens are bound to a key that the client does not prove.'],
  'too-long': badForm,
  scheme: badForm,
  'other-scheme': badForm,
  repeated: badForm,
  malformed: badForm,
  audience: [
    'setting',
    'If these tokens are made for this shop, add their `aud` to `auth.audience`; if not, the client needs another token.',
  ],
  issuer: [
    'setting',
    'If this issuer is trusted, add it to `auth.issuer` or `auth.issuers`, to the last slash.',
  ],
  'unknown-key': ['setting', 'If this issuer is trusted, add its key to `auth.keys`.'],
  signature: [
    'setting',
    'If this issuer is trusted, replace its key in `auth.keys`. Forged tokens look the same.',
  ],
  algorithm: ['setting', 'If this issuer is trusted, add its `alg` to `auth.algorithms`.'],
  subject: ['setting', 'Set `auth.subject` to the claim that names the user in these tokens.'],
  'too-old': ['setting', '`auth.maxTokenAge` is shorter than the life of these tokens: raise it.'],
  'no-issue-time': ['setting', 'Let the issuer add `iat`, or set `auth.maxTokenAge: none`.'],
  'identity-too-long': [
    'setting',
    'Let the issuer put less into the token, or leave fields out of `auth.forward`.',
  ],
  'not-before': clocks,
  'issued-in-future': clocks,
  clock: clocks,
  'no-expiry': badClaims,
  claims: badClaims,
  critical: ['setting', 'Let the issuer leave `crit` out of its tokens.'],
};

const rejections: Readonly<Partial<Record<RejectionName, Advice>>> = {
  'access-token-missing': [
    'either',
    'These clients send no token. If they may call this without one, remove the row; if not, let them sign in before you enforce.',
  ],
  'insufficient-scope': [
    'either',
    'Their tokens lack a scope of the row: give it to the client, or remove it from the row.',
  ],
  'proof-invalid': [
    'client',
    'These requests do not prove that the client has the key of its token: `reason` says what is missing.',
  ],
  'not-permitted': [
    'either',
    'Their claims do not satisfy the condition that `reason` names: correct it, or find out who asks for what is not theirs.',
  ],
  'if-match-missing': [
    'client',
    'These clients change the resource without its tag: they have to send `If-Match` first.',
  ],
  'if-match-invalid': [
    'client',
    'These changes would have overwritten a newer state: refusing them is right, unless a front weakens the tags.',
  ],
  'refresh-token-invalid': [
    'client',
    'A client sent a used or revoked token again: mend the client that keeps it, or set `refreshTokens.leeway`.',
  ],
  'refresh-token-busy': [
    'client',
    'Two refreshes with one token at once: let tabs and threads share one refresh.',
  ],
  'token-request-type': [
    'client',
    'Let the client send token requests as JSON or as an urlencoded form before you enforce.',
  ],
  'token-request-not-plain': [
    'client',
    'Let the client send the token once, in the body, by its exact name before you enforce.',
  ],
  'rate-limited': ['either', 'Let the client send fewer requests, or raise the limit in `rateLimits`.'],
};

const other: Advice = ['either', 'Look at these requests, and mend the client or the row.'];

/** What to do about a would-be refusal, and where the docs say more. */
export function causeOf(
  rejection: RejectionName,
  reason: string | undefined,
): { readonly cause: Cause; readonly next: string; readonly more: string } {
  const detail = rejection === 'access-token-invalid' ? reason : undefined;
  const [cause, next] = tokenReasons[detail ?? ''] ?? rejections[rejection] ?? other;
  return { cause, next, more: `docs/reasons.md#${detail ?? rejection}` };
}
