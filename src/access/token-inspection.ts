import { isRejection, type Rejection, reject } from '../http/rejection.ts';
import { maxTokenLength, readBearerCredentials, readTokenPart } from './bearer-credentials.ts';
import { conditionTexts } from './claim-conditions.ts';
import { type Claims, claimPathText, defaultScopePaths } from './claim-paths.ts';
import { areTooLong, type IdentityForwarding, identityFields, maxIdentityOctets } from './identity-fields.ts';
import type { KeySource } from './key-source.ts';
import { type Asked, missingScopes, refuseClaims } from './requirement-check.ts';
import type { TokenIdentity } from './token-claims.ts';
import type { ChosenIssuer, TokenIssuer, TokenIssuers } from './token-issuers.ts';
import type { ProofMode } from './token-kind.ts';
import { refuseToken, type TokenVerdict, type TokenVerifierOptions } from './token-verifier.ts';

/** The proxy's verdict on a token, and the facts behind it. */
export interface TokenInspection {
  readonly verdict: TokenVerdict;
  /** By name, such as `exp`, in the order of the proxy's checks: what the token says, and what is accepted. */
  readonly facts: Readonly<Record<string, string | undefined>>;
}

/** An issuer with the settings of its verifiers. */
interface InspectedIssuer extends TokenIssuer {
  readonly rules: Omit<TokenVerifierOptions, 'keySource'>;
  readonly keys: { readonly source: Pick<KeySource, 'status'> } | undefined;
}

/** `asked`: what the rows require. Rejects only for a bug in shopward. */
export type InspectToken = (token: string, asked?: Asked) => Promise<TokenInspection>;

/**
 * Verifies the token as the proxy does, and returns the facts behind the verdict. The facts show only claims that are
 * checked, and nothing of the signature. Rejects only for a bug in shopward.
 * @param forward The fields in which the shop gets the identity (`auth.forward`).
 */
export async function inspectToken(
  token: string,
  issuers: TokenIssuers<InspectedIssuer>,
  asked: Asked = { scopes: [] },
  forward: IdentityForwarding['forward'] = {},
): Promise<TokenInspection> {
  const size = `${token.length} characters, ${maxTokenLength} at most`;
  const credentials = readBearerCredentials(['Authorization', `Bearer ${token}`], issuers.takesOpaque);
  if (isRejection(credentials)) return { verdict: credentials, facts: { size } };
  const header = readTokenPart(credentials.token, 0);
  const claims = readTokenPart(credentials.token, 1);
  const chosen = issuers.choose(credentials.token);
  const general = { size, issuer: choiceText(claims, chosen, issuers.all) };
  if (typeof chosen === 'string') return { verdict: refuseToken(chosen), facts: general };
  const verified = await chosen.verifier.verify(credentials.token);
  const identity = isRejection(verified) ? undefined : verified;
  const refusal = identity && refuseIdentity(identity, credentials.token, asked, forward);
  const { issuer } = chosen;
  const isSigned = chosen.by !== 'introspection';
  const facts = {
    ...general,
    ...(isSigned && header && headerFacts(header, issuer)),
    ...(isSigned && header && claims && claimFacts(header, claims, issuer.rules)),
    ...(identity && identityFacts(identity, issuer.rules, asked, forward)),
  };
  return { verdict: refusal ?? verified, facts };
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

function headerFacts({ alg, kid }: Claims, { rules, keys }: InspectedIssuer) {
  const fitting = `fit ${show(alg)}`;
  const needs = kid === undefined ? fitting : `have it and ${fitting}`;
  return {
    alg: `${show(alg)}, ${oneOf(rules.algorithms)} is accepted`,
    key: `kid ${show(kid)}; of ${keys?.source.status().keys ?? 0} keys one must ${needs}`,
  };
}

function claimFacts(header: Claims, claims: Claims, rules: InspectedIssuer['rules']) {
  const { maxTokenAgeMs: maxAge } = rules;
  const age = maxAge === undefined ? '' : `, ${duration(maxAge)} old at most (auth.maxTokenAge)`;
  return {
    kind: kindText(header, claims, rules),
    exp: timeText(claims.exp, rules),
    nbf: timeText(claims.nbf, rules),
    iat: timeText(claims.iat, rules) + age,
    iss: partyText(claims.iss, rules.issuer),
    aud: partyText(claims.aud, rules.audience),
  };
}

function identityFacts(
  identity: TokenIdentity,
  { subject, scopes = defaultScopePaths }: InspectedIssuer['rules'],
  { scopes: all, anyScopes = [], conditions = [], proof }: Asked,
  forward: IdentityForwarding['forward'],
) {
  const groups = [
    ...(all.length === 0 ? [] : [all.join(' ')]),
    ...anyScopes.map((any) => `one of ${any.join(' ')}`),
  ];
  const needs = groups.length === 0 ? '' : `, needs ${groups.join(' and ')}`;
  const fields = Object.entries(identityFields(forward, identity));
  const lengths = fields.map(([name, { length }]) => `${name} has ${length} octets`);
  return {
    subject: `${show(identity.subject)} (auth.subject: ${claimPathText(subject)})`,
    proof: proofText(identity, proof),
    scopes: `has ${identity.scopes.join(' ') || 'none'}${needs} (auth.scopes: ${claimPathText(scopes)})`,
    require: conditions.flatMap((row) => conditionTexts({ require: row.conditions })).join(', ') || undefined,
    fields:
      fields.length === 0 ? undefined : `${lengths.join(', ')}; ${maxIdentityOctets} at most (auth.forward)`,
  };
}

/** Whether the token is bound to a key. The proof itself belongs to a request, not to the token. */
function proofText({ confirmation }: TokenIdentity, proof: Asked['proof']): string | undefined {
  switch (confirmation?.by) {
    case 'dpop':
      return 'bound to a key: each request needs a DPoP proof made with it';
    case 'mtls':
      return 'bound to a client certificate: each request needs it (TLS, or Client-Cert of a trusted proxy)';
  }
  return proof === 'required' ? 'not bound to a key (cnf), which the row requires' : undefined;
}

function choiceText(
  claims: Claims | undefined,
  chosen: ChosenIssuer<InspectedIssuer> | string,
  all: readonly InspectedIssuer[],
): string | undefined {
  if (all.length === 1) return undefined;
  const iss = show(claims?.iss);
  if (typeof chosen === 'string')
    return `iss ${iss} is none of ${all.map(({ name, issuer }) => `${issuer} (${name})`).join(', ')}`;
  return chosen.by === 'introspection' && claims?.iss === undefined
    ? `no JSON Web Token: ${chosen.issuer.name} is asked`
    : `iss ${iss}: ${chosen.issuer.name} alone verifies it`;
}

const boundTexts: Readonly<Record<ProofMode, string>> = {
  none: 'not bound',
  dpop: 'not bound, or by cnf.jkt alone',
  mtls: 'not bound, or by cnf.x5t#S256 alone',
  any: 'not bound, or by cnf.jkt or cnf.x5t#S256 alone',
};

function kindText(
  header: Claims,
  claims: Claims,
  { tokenType, proof = 'none' }: InspectedIssuer['rules'],
): string {
  const { cnf } = claims;
  const bound = cnf === undefined ? '' : `, bound to a key (cnf: ${show(cnf)})`;
  const own = `typ ${show(header.typ)}, claim typ ${show(claims.typ)}, claim token_use ${show(claims.token_use)}${bound}`;
  if (tokenType === undefined) return `${own}; an access token is JWT or at+jwt, and ${boundTexts[proof]}`;
  const { header: name, claim = '', values } = tokenType;
  const location = name === undefined ? `claim ${claimPathText([claim])}` : `header ${name}`;
  return `${own}; ${location} must be ${oneOf(values)} (auth.tokenType)`;
}

const longestShown = 120;

function show(value: unknown): string {
  const text = value === undefined ? 'none' : (JSON.stringify(value) ?? 'none');
  return text.length > longestShown ? `${text.slice(0, longestShown)}...` : text;
}

function oneOf(accepted: string | readonly string[]): string {
  return typeof accepted === 'string' ? accepted : accepted.join(' or ');
}

function partyText(claim: unknown, accepted: string | readonly string[] | undefined): string {
  return `${show(claim)}, ${accepted === undefined ? 'not checked' : `${oneOf(accepted)} is accepted`}`;
}

function timeText(seconds: unknown, rules: InspectedIssuer['rules']): string {
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
