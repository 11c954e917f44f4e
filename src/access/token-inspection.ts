import { isRejection, type Rejection, reject } from '../http/rejection.ts';
import { parseJsonObject } from '../lib/json.ts';
import { maxTokenLength, readBearerCredentials } from './bearer-credentials.ts';
import { conditionTexts } from './claim-conditions.ts';
import { type Claims, claimPathText, defaultScopePaths } from './claim-paths.ts';
import { areTooLong, type IdentityForwarding, identityFields, maxIdentityOctets } from './identity-fields.ts';
import type { KeySource } from './key-source.ts';
import { type Asked, missingScopes, refuseClaims } from './requirement-check.ts';
import type { TokenIdentity } from './token-claims.ts';
import type { ChosenIssuer, TokenIssuer, TokenIssuers } from './token-issuers.ts';
import type { ProofMode } from './token-kind.ts';
import { readTokenHeader, refuseToken, type TokenVerifierOptions } from './token-verifier.ts';

/** One check of the proxy, its outcome and an explanation. */
interface TokenCheck {
  readonly name: string;
  /** `skipped`: the configuration does not ask for it, or an earlier check has failed. */
  readonly outcome: 'passed' | 'failed' | 'skipped';
  readonly text: string;
}

/** The checks of a token, in the order in which the proxy makes them. */
export interface TokenInspection {
  readonly checks: readonly TokenCheck[];
  readonly verdict: TokenIdentity | Rejection;
}

/** An issuer with the settings of its verifiers. */
interface InspectedIssuer extends TokenIssuer {
  readonly rules: Omit<TokenVerifierOptions, 'keySource'>;
  readonly keys: { readonly source: Pick<KeySource, 'status'> } | undefined;
}

/** `asked`: what the rows require. Rejects only for a bug in shopward. */
export type InspectToken = (token: string, asked?: Asked) => Promise<TokenInspection>;

const nothingAsked: Asked = { scopes: [] };

/** The readable parts of the token, for the texts only; no decision depends on them. */
interface Read {
  readonly length: number;
  readonly header: Claims;
  readonly claims: Claims;
  readonly identity: TokenIdentity | undefined;
  readonly asked: Asked;
  readonly forward: IdentityForwarding['forward'];
  /** The issuer that verifies the token; undefined: none. */
  readonly chosen: ChosenIssuer<InspectedIssuer> | undefined;
  readonly issuers: TokenIssuers<InspectedIssuer>;
  /** The settings of the chosen issuer, else of the first. */
  readonly rules: InspectedIssuer['rules'];
}

interface Step {
  readonly name: string;
  /** Refusal reasons that mean that this check has failed. */
  readonly reasons: readonly string[];
  /** Undefined: the configuration does not ask for it. Null: the check does not apply to this token. */
  say(read: Read): string | undefined | null;
}

/** A check of a token that is verified by keys. */
function ofSigned(say: (read: Read) => string | undefined): Step['say'] {
  return (read) => (read.chosen?.by === 'introspection' ? null : say(read));
}

/** A check of a claim, from the token itself or from the issuer's answer. */
function ofClaims(say: (read: Read) => string | undefined): Step['say'] {
  return (read) => (read.chosen?.by === 'introspection' ? 'as its issuer says' : say(read));
}

/** In the order of `readBearerCredentials`, `TokenIssuers`, `readTokenHeader`, `TokenVerifier`, `validateClaims` and `createAuthenticate`; a test compares them. */
const steps: readonly Step[] = [
  {
    name: 'size',
    reasons: ['too-long'],
    say: ({ length }) => `${length} characters, ${maxTokenLength} at most`,
  },
  {
    name: 'form',
    reasons: ['form'],
    say: ({ issuers }) =>
      issuers.takesOpaque
        ? 'letters, digits and -._~+/'
        : 'three parts of base64url with dots between them, in their one spelling',
  },
  { name: 'issuer', reasons: ['choice'], say: choiceText },
  {
    name: 'active',
    reasons: ['inactive', 'introspection'],
    say: ({ chosen }) => (chosen?.by === 'introspection' ? 'its issuer is asked, and calls it active' : null),
  },
  { name: 'header', reasons: ['header'], say: ofSigned(() => 'a JSON object, its kid a text') },
  {
    name: 'alg',
    reasons: ['algorithm'],
    say: ofSigned(({ header, rules }) => `${show(header.alg)}, ${oneOf(rules.algorithms)} is accepted`),
  },
  { name: 'crit', reasons: ['critical'], say: ofSigned(() => 'no extension that must be understood') },
  {
    name: 'key',
    reasons: ['unknown-key', 'keys'],
    say: ofSigned(({ header, chosen }) => {
      const keys = chosen?.issuer.keys?.source.status().keys ?? 0;
      const fitting = `fit ${show(header.alg)}`;
      return header.kid === undefined
        ? `no kid; of ${keys} keys one must ${fitting}`
        : `kid ${show(header.kid)}; of ${keys} keys one must have it and ${fitting}`;
    }),
  },
  { name: 'signature', reasons: ['signature'], say: ofSigned(() => 'made by that key') },
  { name: 'payload', reasons: ['payload'], say: ofSigned(() => 'a JSON object') },
  { name: 'kind', reasons: ['other-kind', 'sender-constrained'], say: kindText },
  {
    name: 'times',
    reasons: ['no-expiry', 'claims'],
    say: ofClaims(() => 'exp is there; exp, nbf and iat are numbers'),
  },
  { name: 'exp', reasons: ['expired'], say: ofClaims((read) => timeText(read, 'exp')) },
  { name: 'nbf', reasons: ['not-before'], say: ofClaims((read) => timeText(read, 'nbf')) },
  {
    name: 'iat',
    reasons: ['issued-in-future', 'no-issue-time', 'too-old'],
    say: ofClaims((read) => {
      const { maxTokenAgeMs } = read.rules;
      const age =
        maxTokenAgeMs === undefined ? '' : `, ${duration(maxTokenAgeMs)} old at most (auth.maxTokenAge)`;
      return timeText(read, 'iat') + age;
    }),
  },
  {
    name: 'iss',
    reasons: ['issuer'],
    say: ofClaims(({ claims, rules }) => partyText(claims.iss, rules.issuer)),
  },
  {
    name: 'aud',
    reasons: ['audience'],
    say: ofClaims(({ claims, rules }) => partyText(claims.aud, rules.audience)),
  },
  {
    name: 'subject',
    reasons: ['subject'],
    say: ({ identity, rules }) =>
      `${identity === undefined ? 'names no user' : show(identity.subject)} (auth.subject: ${claimPathText(rules.subject)})`,
  },
  { name: 'proof', reasons: ['unbound'], say: proofText },
  {
    name: 'scopes',
    reasons: ['scope'],
    say: scopesText,
  },
  {
    name: 'require',
    reasons: ['require'],
    say: ({ asked: { conditions = [] } }) =>
      conditions.flatMap((row) => conditionTexts({ require: row.conditions })).join(', ') || null,
  },
  { name: 'fields', reasons: ['identity-too-long'], say: fieldsText },
];

/** Every reason for which a check can fail, as the docs list them. Exported for its tests. */
export const inspectionReasons: readonly string[] = steps.flatMap(({ reasons }) => reasons);

/**
 * Verifies the token as the proxy does, and lists which checks passed and which one failed. The texts show only claims that
 * are checked, and nothing of the signature. Rejects only for a bug in shopward.
 * @param asked What the rows require.
 * @param forward The fields in which the shop gets the identity (`auth.forward`).
 */
export async function inspectToken(
  token: string,
  issuers: TokenIssuers<InspectedIssuer>,
  asked: Asked = nothingAsked,
  forward: IdentityForwarding['forward'] = {},
): Promise<TokenInspection> {
  const { verdict, reason, identity, chosen } = await decide(token, issuers, asked, forward);
  const [header = '', payload = ''] = token.slice(0, maxTokenLength).split('.', 2);
  const read: Read = {
    length: token.length,
    header: readPart(header),
    claims: readPart(payload),
    ...{ identity, asked, forward, chosen, issuers },
    rules: (chosen?.issuer ?? (issuers.all[0] as InspectedIssuer)).rules,
  };
  const said = steps.map((step) => ({ step, text: step.say(read) })).filter(({ text }) => text !== null);
  const failed = said.findIndex(({ step }) => reason !== undefined && step.reasons.includes(reason));
  const checks = said.map(({ step: { name }, text }, at): TokenCheck => {
    if (failed !== -1 && at > failed) return { name, outcome: 'skipped', text: 'not reached' };
    if (text === undefined || text === null) return { name, outcome: 'skipped', text: 'not checked' };
    return { name, outcome: at === failed ? 'failed' : 'passed', text };
  });
  return { checks, verdict };
}

interface Decision {
  readonly verdict: TokenIdentity | Rejection;
  /** Identifies the failed step. */
  readonly reason?: string | undefined;
  /** The user of a verified token, even if it lacks a scope. */
  readonly identity?: TokenIdentity;
  readonly chosen?: ChosenIssuer<InspectedIssuer>;
}

/** The verdict of the proxy, and its step: several steps have the reasons `malformed` and `issuer`. */
async function decide(
  token: string,
  issuers: TokenIssuers<InspectedIssuer>,
  asked: Asked,
  forward: IdentityForwarding['forward'],
): Promise<Decision> {
  const credentials = readBearerCredentials(['Authorization', `Bearer ${token}`], issuers.takesOpaque);
  if (isRejection(credentials)) {
    return { verdict: credentials, reason: credentials.reason === 'too-long' ? 'too-long' : 'form' };
  }
  const chosen = issuers.choose(credentials.token);
  if (typeof chosen === 'string') return { verdict: refuseToken(chosen), reason: 'choice' };
  const verdict = await chosen.verifier.verify(credentials.token);
  if (!isRejection(verdict)) {
    const refusal = refuseIdentity(verdict, credentials.token, asked, forward);
    const reason = refusal?.rejection === 'not-permitted' ? 'require' : refusal?.reason;
    return { verdict: refusal ?? verdict, reason, identity: verdict, chosen };
  }
  const { algorithms } = chosen.issuer.rules;
  const isHeader = readTokenHeader(credentials.token, algorithms) === 'malformed';
  const { reason } = verdict;
  return { verdict, reason: reason === 'malformed' ? (isHeader ? 'header' : 'payload') : reason, chosen };
}

function refuseIdentity(
  identity: TokenIdentity,
  token: string,
  asked: Asked,
  forward: IdentityForwarding['forward'],
): Rejection | undefined {
  if (asked.proof === 'required' && identity.confirmation === undefined)
    return reject('proof-invalid', { reason: 'unbound' });
  if (missingScopes(asked, identity) !== undefined) return reject('insufficient-scope', { reason: 'scope' });
  const refusal = refuseClaims(asked.conditions, token, identity);
  if (refusal !== undefined) return refusal;
  return areTooLong(identityFields(forward, identity))
    ? reject('access-token-invalid', { reason: 'identity-too-long' })
    : undefined;
}

function scopesText({ identity, asked: { scopes, anyScopes = [] }, rules }: Read): string | undefined {
  const all = scopes.length === 0 ? [] : [scopes.join(' ')];
  const needs = [...all, ...anyScopes.map((any) => `one of ${any.join(' ')}`)];
  if (needs.length === 0) return undefined;
  const claims = claimPathText(rules.scopes ?? defaultScopePaths);
  return `has ${identity?.scopes.join(' ') || 'none'}, needs ${needs.join(' and ')} (auth.scopes: ${claims})`;
}

/** The lengths of the fields of `auth.forward`; null if there are none. */
function fieldsText({ identity, forward }: Read): string | null {
  const fields = Object.entries(identity === undefined ? {} : identityFields(forward, identity));
  if (fields.length === 0) return null;
  const lengths = fields.map(([name, { length }]) => `${name} has ${length} octets`);
  return `${lengths.join(', ')}; ${maxIdentityOctets} at most (auth.forward)`;
}

/** Whether the token is bound to a key. The proof itself belongs to a request, not to the token. */
function proofText({ identity, asked }: Read): string | null {
  switch (identity?.confirmation?.by) {
    case 'dpop':
      return 'bound to a key: each request needs a DPoP proof made with it';
    case 'mtls':
      return 'bound to a client certificate: each request needs it (TLS, or Client-Cert of a trusted proxy)';
  }
  return asked.proof === 'required' ? 'not bound to a key (cnf), which the row requires' : null;
}

/** Which of several issuers gets the token. */
function choiceText({ claims, chosen, issuers }: Read): string | null {
  const { all } = issuers;
  if (all.length === 1) return null;
  if (chosen === undefined) {
    const known = all.map(({ name, issuer }) => `${issuer} (${name})`).join(', ');
    return `iss ${show(claims.iss)} is none of ${known}`;
  }
  return chosen.by === 'introspection' && claims.iss === undefined
    ? `no JSON Web Token: ${chosen.issuer.name} is asked`
    : `iss ${show(claims.iss)}: ${chosen.issuer.name}, whose keys alone count`;
}

const boundTexts: Readonly<Record<ProofMode, string>> = {
  none: 'not bound',
  dpop: 'not bound, or by cnf.jkt alone',
  mtls: 'not bound, or by cnf.x5t#S256 alone',
  any: 'not bound, or by cnf.jkt or cnf.x5t#S256 alone',
};

/** What the token says that it is, and what an access token must say. */
function kindText({ header, claims, rules: { tokenType, proof = 'none' } }: Read): string {
  const { cnf } = claims;
  const bound = cnf === undefined ? '' : `, bound to a key (cnf: ${show(cnf)})`;
  const own = `typ ${show(header.typ)}, claim typ ${show(claims.typ)}, claim token_use ${show(claims.token_use)}${bound}`;
  if (tokenType === undefined) return `${own}; an access token is JWT or at+jwt, and ${boundTexts[proof]}`;
  const { header: name, claim = '', values } = tokenType;
  const location = name === undefined ? `claim ${claimPathText([claim])}` : `header ${name}`;
  return `${own}; ${location} must be ${oneOf(values)} (auth.tokenType)`;
}

function readPart(part: string): Claims {
  return parseJsonObject(Buffer.from(part, 'base64url')) ?? {};
}

const longestShown = 120;

function show(value: unknown): string {
  const text = value === undefined ? 'none' : (JSON.stringify(value) ?? 'none');
  return text.length > longestShown ? `${text.slice(0, longestShown)}...` : text;
}

function oneOf(accepted: string | readonly string[]): string {
  return typeof accepted === 'string' ? accepted : accepted.join(' or ');
}

function partyText(claim: unknown, accepted: string | readonly string[] | undefined): string | undefined {
  return accepted === undefined ? undefined : `${show(claim)}, ${oneOf(accepted)} is accepted`;
}

function timeText({ claims, rules }: Read, name: 'exp' | 'nbf' | 'iat'): string {
  const seconds = claims[name];
  if (typeof seconds !== 'number' || Math.abs(seconds) > 8.64e12) return 'none';
  const nowMs = rules.now();
  const restMs = seconds * 1000 - nowMs;
  const distance = restMs >= 0 ? `in ${duration(restMs)}` : `${duration(-restMs)} ago`;
  return `${new Date(seconds * 1000).toISOString()}, ${distance} by the clock here, ${duration(rules.clockToleranceMs)} of tolerance`;
}

function duration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.round(minutes / 60);
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} days`;
}
