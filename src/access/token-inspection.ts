import { isRejection, type Rejection, reject } from '../http/rejection.ts';
import { parseJsonObject } from '../lib/json.ts';
import { maxTokenLength, readBearerCredentials } from './bearer-credentials.ts';
import { type Claims, claimPathText, defaultScopePaths } from './claim-paths.ts';
import type { Identity } from './token-claims.ts';
import { readTokenHeader, type TokenVerifier, type TokenVerifierOptions } from './token-verifier.ts';

/** One check of the proxy, in words. */
export interface TokenCheck {
  readonly name: string;
  /** `skipped`: the proxy does not look at it, or a check before it has failed. */
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** What was found, and what is wanted. */
  readonly text: string;
}

/** What the proxy makes of a token, check by check, in its order. */
export interface TokenInspection {
  readonly checks: readonly TokenCheck[];
  /** What the proxy itself decided. */
  readonly verdict: Identity | Rejection;
}

/** What the verifier goes by, and the verifier. */
export type InspectionRules = Omit<TokenVerifierOptions, 'maxVerifying'> & {
  readonly verifier: Pick<TokenVerifier, 'verify'>;
};

/** The token as far as it can be read, for the words; nothing is decided by it. */
interface Read {
  readonly length: number;
  readonly header: Claims;
  readonly claims: Claims;
  readonly identity: Identity | undefined;
  readonly scopes: readonly string[];
  readonly rules: InspectionRules;
}

interface Step {
  readonly name: string;
  /** Reasons that say that this check has failed. */
  readonly reasons: readonly string[];
  /** Undefined: the proxy does not look at it, as it is configured. */
  say(read: Read): string | undefined;
}

/** In the order of `readBearerCredentials`, `readTokenHeader`, `TokenVerifier` and `validateClaims`; a test holds them to it. */
const steps: readonly Step[] = [
  {
    name: 'size',
    reasons: ['too-long'],
    say: ({ length }) => `${length} characters, ${maxTokenLength} at most`,
  },
  {
    name: 'form',
    reasons: ['form'],
    say: () => 'three parts of base64url with dots between them, in their one spelling',
  },
  { name: 'header', reasons: ['header'], say: () => 'a JSON object, its kid a text' },
  {
    name: 'alg',
    reasons: ['algorithm'],
    say: ({ header, rules }) => `${show(header.alg)}, ${oneOf(rules.algorithms)} is accepted`,
  },
  { name: 'crit', reasons: ['critical'], say: () => 'no extension that must be understood' },
  {
    name: 'key',
    reasons: ['unknown-key', 'keys'],
    say: ({ header, rules }) =>
      `kid ${show(header.kid)}; of ${rules.keySource.status().keys} keys one must bear it and fit ${show(header.alg)}`,
  },
  { name: 'signature', reasons: ['signature'], say: () => 'made by that key' },
  { name: 'typ', reasons: [], say: () => undefined },
  { name: 'payload', reasons: ['payload'], say: () => 'a JSON object' },
  {
    name: 'times',
    reasons: ['no-expiry', 'claims'],
    say: () => 'exp is there; exp, nbf and iat are numbers',
  },
  { name: 'exp', reasons: ['expired'], say: (read) => timeText(read, 'exp') },
  { name: 'nbf', reasons: ['not-before'], say: (read) => timeText(read, 'nbf') },
  {
    name: 'iat',
    reasons: ['issued-in-future', 'no-issue-time', 'too-old'],
    say(read) {
      const { maxTokenAgeMs } = read.rules;
      const age =
        maxTokenAgeMs === undefined ? '' : `, ${duration(maxTokenAgeMs)} old at most (auth.maxTokenAge)`;
      return timeText(read, 'iat') + age;
    },
  },
  { name: 'iss', reasons: ['issuer'], say: ({ claims, rules }) => partyText(claims.iss, rules.issuer) },
  { name: 'aud', reasons: ['audience'], say: ({ claims, rules }) => partyText(claims.aud, rules.audience) },
  {
    name: 'subject',
    reasons: ['subject'],
    say: ({ identity, rules }) =>
      `${identity === undefined ? 'names nobody' : show(identity.subject)} (auth.subject: ${claimPathText(rules.subject)})`,
  },
  {
    name: 'scopes',
    reasons: ['scope'],
    say: ({ identity, scopes, rules }) =>
      scopes.length === 0
        ? undefined
        : `has ${identity?.scopes.join(' ') || 'none'}, needs ${scopes.join(' ')} (auth.scopes: ${claimPathText(rules.scopes ?? defaultScopePaths)})`,
  },
];

/** Every reason that a check can fail for, as the docs list them. */
export const inspectionReasons: readonly string[] = steps.flatMap(({ reasons }) => reasons);

/**
 * Asks the proxy's own verifier, and says which of its checks passed and which one failed. The texts name no claim but
 * those that the configuration checks, and nothing of the signature. Rejects only for a fault of ours.
 */
export async function inspectToken(
  token: string,
  rules: InspectionRules,
  scopes: readonly string[] = [],
): Promise<TokenInspection> {
  const { verdict, reason, identity } = await decide(token, rules, scopes);
  const failed = steps.findIndex(({ reasons }) => reason !== undefined && reasons.includes(reason));
  const [header = '', payload = ''] = token.slice(0, maxTokenLength).split('.', 2);
  const read: Read = {
    length: token.length,
    header: readPart(header),
    claims: readPart(payload),
    ...{ identity, scopes, rules },
  };
  const checks = steps.map((step, at): TokenCheck => {
    if (failed !== -1 && at > failed) return { name: step.name, outcome: 'skipped', text: 'not reached' };
    const text = step.say(read);
    if (text === undefined) return { name: step.name, outcome: 'skipped', text: 'not checked' };
    return { name: step.name, outcome: at === failed ? 'failed' : 'passed', text };
  });
  return { checks, verdict };
}

interface Decision {
  readonly verdict: Identity | Rejection;
  /** Of which step it is. */
  readonly reason?: string | undefined;
  /** Whom it names, though it may lack a scope. */
  readonly identity?: Identity;
}

/** The verdict of the proxy, and at which step it fell: `malformed` is a word of three of them. */
async function decide(
  token: string,
  { verifier, algorithms }: InspectionRules,
  scopes: readonly string[],
): Promise<Decision> {
  const credentials = readBearerCredentials(['Authorization', `Bearer ${token}`]);
  if (isRejection(credentials)) {
    return { verdict: credentials, reason: credentials.reason === 'too-long' ? 'too-long' : 'form' };
  }
  const verdict = await verifier.verify(credentials.token);
  if (!isRejection(verdict)) {
    if (scopes.every((scope) => verdict.scopes.includes(scope))) return { verdict, identity: verdict };
    const refusal = reject('insufficient-scope', { reason: 'scope' });
    return { verdict: refusal, reason: 'scope', identity: verdict };
  }
  const isHeader = readTokenHeader(credentials.token, algorithms) === 'malformed';
  const { reason } = verdict;
  return { verdict, reason: reason === 'malformed' ? (isHeader ? 'header' : 'payload') : reason };
}

function readPart(part: string): Claims {
  return parseJsonObject(Buffer.from(part, 'base64url')) ?? {};
}

const longestShown = 120;

/** A value of the token, as one short line. */
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
