import { JOSEError } from 'jose/errors';
import { compactVerify } from 'jose/jws/compact/verify';
import { type Rejection, reject } from '../http/rejection.ts';
import type { KeySource, Keys } from './key-source.ts';
import { createSubjectReader } from './subject.ts';
import { type ClaimRules, type Identity, validateClaims, validateTimes } from './token-claims.ts';
import { readTokenHeader, type TokenHeader } from './token-header.ts';
import { parseJsonObject } from './token-json.ts';
import { refuseToken } from './token-refusal.ts';
import { createVerifiedTokens, digestToken, type TokenDigest } from './verified-tokens.ts';

export interface TokenVerifierOptions extends Omit<ClaimRules, 'readSubject'> {
  /** Accepted `alg` values; never `none`. */
  readonly algorithms: readonly string[];
  readonly keySource: KeySource;
  /** The claim that names the user: see `createSubjectReader`. */
  readonly subject: string;
  /** Default 10 000; 0 remembers nothing. */
  readonly maxRememberedTokens?: number;
  /**
   * Tokens that may be under verification at one time; more are refused as `overloaded`, so that a flood of bad ones
   * leaves room for remembered ones. Default 1000: half of `limits.inFlight`.
   */
  readonly maxVerifying?: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Called with who a token names, once for each that was verified and not for one that is remembered. */
  readonly onVerified?: (identity: Identity) => void;
}

export interface TokenVerifier {
  /**
   * Checks a token in canonical compact form: signature first, then claims. A value at once where the token is
   * remembered or cannot be good, else a promise. A promise rejects only for a fault of ours.
   */
  verify(token: string): Identity | Rejection | Promise<Identity | Rejection>;
  /** Forgets every remembered token. It happens by itself when keys change. */
  forgetAll(): void;
  status(): TokenVerifierStatus;
  /** Lets the key source go, which is its owner's to close. */
  close(): void;
}

export interface TokenVerifierStatus {
  readonly remembered: number;
  readonly verifying: number;
}

export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  const { algorithms, keySource, now, maxRememberedTokens = 10_000, maxVerifying = 1_000 } = options;
  if (algorithms.includes('none')) throw new TypeError('The algorithm none verifies nothing.');
  const rules: ClaimRules = { ...options, readSubject: createSubjectReader(options.subject) };
  const remembered = createVerifiedTokens(maxRememberedTokens);
  /** One verification per token, however many requests carry it. */
  const flights = new Map<TokenDigest, Promise<Identity | Rejection>>();
  let verifying = 0;
  /** A verification that began before the keys changed is not remembered. */
  let generation = 0;

  function forgetAll(): void {
    generation++;
    remembered.clear();
    flights.clear();
  }
  const stopListening = keySource.onChange(forgetAll);

  function verify(token: string): Identity | Rejection | Promise<Identity | Rejection> {
    const digest = digestToken(token);
    const known = remembered.get(digest);
    if (known !== undefined) {
      const refusal = validateTimes(known, rules, now());
      return refusal === undefined ? known.identity : refuseToken(refusal);
    }
    const shared = flights.get(digest);
    if (shared !== undefined) return shared;
    const header = readTokenHeader(token, algorithms);
    if (typeof header === 'string') return refuseToken(header);
    if (verifying >= maxVerifying)
      return reject('overloaded', { reason: 'verifications', retryAfterSeconds: 1 });
    verifying++;
    const flight = verifyNew(token, digest, header).finally(() => {
      verifying--;
      if (flights.get(digest) === flight) flights.delete(digest);
    });
    flights.set(digest, flight);
    return flight;
  }

  async function verifyNew(
    token: string,
    digest: TokenDigest,
    header: TokenHeader,
  ): Promise<Identity | Rejection> {
    const startedIn = generation;
    const payload = await verifySignature(token, header, keySource);
    if (!(payload instanceof Uint8Array)) return payload;
    const claims = parseJsonObject(payload);
    if (claims === undefined) return refuseToken('malformed');
    const verdict = validateClaims(claims, rules, now());
    if (typeof verdict === 'string') return refuseToken(verdict);
    if (startedIn === generation) remembered.set(digest, verdict);
    options.onVerified?.(verdict.identity);
    return verdict.identity;
  }

  return {
    verify,
    forgetAll,
    status: () => ({ remembered: remembered.size, verifying }),
    close() {
      stopListening();
      forgetAll();
    },
  };
}

async function verifySignature(
  token: string,
  header: TokenHeader,
  source: KeySource,
): Promise<Uint8Array | Rejection> {
  const found = await source.keysFor(header);
  if ('retryAfterSeconds' in found) return reject('keys-unavailable', { ...found, reason: 'keys' });
  const { keys } = found;
  const payload = await verifyWithAny(token, header, keys);
  if (payload !== undefined) return payload;
  // A token that names its key can be checked by that key alone; one that does not may be of a newer key.
  const isKeyNamed = keys.some((key) => key.kid !== undefined && key.kid === header.kid);
  if (isKeyNamed || keys.length === 0) return refuseToken(keys.length === 0 ? 'unknown-key' : 'signature');
  const newer = await source.renew(header, keys);
  if ('retryAfterSeconds' in newer) return reject('keys-unavailable', { ...newer, reason: 'keys' });
  return (await verifyWithAny(token, header, newer.keys)) ?? refuseToken('signature');
}

async function verifyWithAny(
  token: string,
  { alg }: TokenHeader,
  keys: Keys,
): Promise<Uint8Array | undefined> {
  for (const key of keys) {
    try {
      return (await compactVerify(token, key.material, { algorithms: [alg] })).payload;
    } catch (error) {
      // Whatever the library says of a token is a verdict; anything else is a fault of ours.
      if (!(error instanceof JOSEError)) throw error;
    }
  }
  return undefined;
}
