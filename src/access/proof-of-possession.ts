import { createHmac, hash } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose/jwk/thumbprint';
import { compactVerify } from 'jose/jws/compact/verify';
import { importJWK } from 'jose/key/import';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { fieldValue, fieldValues } from '../http/field-list.ts';
import { decodeEscapes } from '../http/path-folding.ts';
import { type Rejection, reject } from '../http/rejection.ts';
import { canonicaliseHost } from '../http/request-target.ts';
import { isObject, type JsonObject } from '../lib/json.ts';
import { type BearerCredentials, isCompactToken, readTokenPart } from './bearer-credentials.ts';
import { privateMembers } from './key-document.ts';
import type { Requirement } from './protected-list.ts';
import type { TokenIdentity } from './token-claims.ts';
import { originOf } from './token-locations.ts';
import type { UseProof } from './used-proofs.ts';

interface DpopOptions {
  /** Scheme and host by which clients know the API. Undefined: those of the request. */
  readonly publicUrl?: string | undefined;
  readonly clockToleranceMs: number;
  readonly useProof: UseProof;
  readonly nonces?: ProofNonces | undefined;
  readonly now: () => number;
}

/** Refuses a request that does not prove that its sender has the token's key. Undefined: it does, or need not. */
export type CheckProof = (
  request: CanonicalRequest,
  credentials: BearerCredentials,
  identity: TokenIdentity,
  asked: Pick<Requirement, 'proof'>,
) => Rejection | undefined | Promise<Rejection | undefined>;

export const certificateReasons = ['no-certificate', 'certificate-form', 'certificate'];

/** Reasons that are about the token, not about the proof (RFC 9449 section 7.1, RFC 8705 section 3: `invalid_token`). */
const bindingReasons = ['unbound', 'bearer', 'proof-key', ...certificateReasons];

export function proofError(reason = ''): 'invalid_token' | 'use_dpop_nonce' | 'invalid_dpop_proof' {
  if (bindingReasons.includes(reason)) return 'invalid_token';
  return reason === 'proof-nonce' ? 'use_dpop_nonce' : 'invalid_dpop_proof';
}

/** Only asymmetric signatures (RFC 9449 section 4.3). */
export const proofAlgorithms = ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519', 'PS256', 'RS256'];

/** Longest proof, in characters; a proof with an RSA key of 4,096 bits has 2,000. */
const maxProofLength = 4096;
const maxIdLength = 256;
/** Greatest age of a proof by its `iat`, in milliseconds. */
const maxAgeMs = 60_000;

/** How long a used proof must be remembered: until it is too old for every process whose clock is within the tolerance. */
export function proofLifeMs(clockToleranceMs: number): number {
  return maxAgeMs + 3 * clockToleranceMs + 1_000;
}

/**
 * Checks DPoP proofs (RFC 9449 sections 4.3 and 7) and client certificates (RFC 8705 section 3). A token that is not bound to
 * a key needs no proof; it is refused if the row requires one. `dpop` undefined: DPoP is switched off.
 */
export function createProofCheck(dpop?: DpopOptions): CheckProof {
  return (request, { token, isDpop = false }, { confirmation, subject }, { proof }) => {
    if (confirmation === undefined) return proof === 'required' || isDpop ? refuse('unbound') : undefined;
    const { by, thumbprint } = confirmation;
    if (by === 'mtls') return isDpop ? refuse('unbound') : checkCertificate(request, thumbprint);
    if (!isDpop || dpop === undefined) return refuse('bearer');
    return checkDpop(request, token, thumbprint, subject, dpop);
  };
}

/** A structured field with one byte sequence (RFC 9440 section 2.1), without parameters. */
const byteSequence = /^:([A-Za-z0-9+/]+={0,2}):$/;

function checkCertificate(
  { fields, clientCertificate }: CanonicalRequest,
  thumbprint: string,
): Rejection | undefined {
  const [sent, ...more] = fieldValues(fields, 'client-cert');
  let presented = clientCertificate;
  if (sent !== undefined) {
    const [, base64] = byteSequence.exec(sent) ?? [];
    if (base64 === undefined || more.length > 0) return refuse('certificate-form');
    presented = hash('sha256', Buffer.from(base64, 'base64'), 'base64url');
  }
  if (presented === undefined) return refuse('no-certificate');
  return presented === thumbprint ? undefined : refuse('certificate');
}

async function checkDpop(
  request: CanonicalRequest,
  token: string,
  jkt: string,
  client: string,
  options: DpopOptions,
): Promise<Rejection | undefined> {
  const [proof, ...more] = fieldValues(request.fields, 'dpop');
  if (proof === undefined) return refuse('no-proof');
  if (more.length > 0) return refuse('proof-repeated');
  const read = readProof(proof);
  if (typeof read === 'string') return refuse(read);
  const { alg, jwk, claims, jti } = read;
  const fault = faultOf(claims, request, token, options);
  if (fault !== undefined) return refuse(fault);
  if ((await calculateJwkThumbprint(jwk)) !== jkt) return refuse('proof-key');
  if (!(await isSigned(proof, alg, jwk))) return refuse('proof-signature');
  switch (await options.useProof(hash('sha256', `${jkt} ${jti}`, 'base64url'), client)) {
    case 'first':
      return undefined;
    case 'used':
      return refuse('proof-used');
    case 'full':
      return reject('overloaded', { reason: 'proofs', retryAfterSeconds: 1 });
    case 'unknown':
      return reject('keys-unavailable', { reason: 'proof-store', retryAfterSeconds: 1 });
  }
}

function refuse(reason: string): Rejection {
  return reject('proof-invalid', { reason });
}

/** Reads the parts of a proof without verifying it; a string is the reason for which it is refused. */
function readProof(proof: string) {
  if (proof.length > maxProofLength || !isCompactToken(proof)) return 'proof-form';
  const [header, claims] = [readTokenPart(proof, 0), readTokenPart(proof, 1)];
  if (header === undefined || claims === undefined || header.typ !== 'dpop+jwt') return 'proof-form';
  const { alg } = header;
  if (typeof alg !== 'string' || !proofAlgorithms.includes(alg)) return 'proof-algorithm';
  const jwk = publicKeyOf(header.jwk);
  const { jti } = claims;
  const isNamed = typeof jti === 'string' && jti !== '' && jti.length <= maxIdLength;
  if (!isNamed || jwk === undefined || Object.hasOwn(header, 'crit') || Object.hasOwn(header, 'b64'))
    return 'proof-form';
  return { alg, jwk, claims, jti };
}

type PublicKey = { readonly kty: string } & Readonly<Record<string, string>>;

/** RFC 7638 section 3.2: the members that define a key. The `e` of an RSA key must be 65,537: with 1, anyone could sign. */
const keyMembers = new Map([
  ['EC', ['kty', 'crv', 'x', 'y']],
  ['OKP', ['kty', 'crv', 'x']],
  ['RSA', ['kty', 'n', 'e']],
]);

/** Keeps only the members that define the key; `use`, `key_ops` and `alg` have no effect. Undefined: not a public key. */
function publicKeyOf(jwk: unknown): PublicKey | undefined {
  if (!isObject(jwk) || privateMembers.some((name) => Object.hasOwn(jwk, name))) return undefined;
  const members = typeof jwk.kty === 'string' ? keyMembers.get(jwk.kty) : undefined;
  if (jwk.kty === 'RSA' && jwk.e !== 'AQAB') return undefined;
  if (members?.every((name) => typeof jwk[name] === 'string' && jwk[name] !== '') !== true) return undefined;
  return Object.fromEntries(members.map((name) => [name, jwk[name]])) as PublicKey;
}

/** The first claim that does not fit this request (RFC 9449 section 4.3). */
function faultOf(
  claims: JsonObject,
  request: CanonicalRequest,
  token: string,
  { publicUrl, clockToleranceMs, nonces, now }: DpopOptions,
): string | undefined {
  if (claims.htm !== request.method) return 'proof-method';
  const host = fieldValue(request.fields, 'x-forwarded-host') ?? request.host;
  const origin = publicUrl ?? originOf({ scheme: request.scheme, host });
  if (normalUrl(claims.htu) !== normalUrl(origin + request.path)) return 'proof-url';
  if (claims.ath !== hash('sha256', token, 'base64url')) return 'proof-token';
  const ageMs = typeof claims.iat === 'number' ? now() - claims.iat * 1000 : Number.NaN;
  if (!(ageMs >= -clockToleranceMs && ageMs <= maxAgeMs + clockToleranceMs)) return 'proof-time';
  return nonces === undefined || nonces.accepts(claims.nonce) ? undefined : 'proof-nonce';
}

const httpUrl = /^(https?):\/\/([^/?#]*)([^?#]*)/i;

/** Scheme, host and path in their normal form (RFC 3986 section 6.2). A value without a normal form equals no other. */
function normalUrl(url: unknown): string | symbol {
  const [, scheme = '', authority = '', sentPath] = httpUrl.exec(typeof url === 'string' ? url : '') ?? [];
  const host = canonicaliseHost(authority);
  const decoded = decodeEscapes(sentPath || '/');
  if (host === undefined || 'fault' in decoded) return Symbol('none');
  return originOf({ scheme: scheme.toLowerCase() as 'http', host }) + decoded.path;
}

/** Any exception is due to the client's key or signature, such as an RSA key of 1,024 bits. */
async function isSigned(proof: string, alg: string, jwk: PublicKey): Promise<boolean> {
  try {
    await compactVerify(proof, await importJWK(jwk, alg), { algorithms: [alg] });
    return true;
  } catch {
    return false;
  }
}

/** Nonces of DPoP proofs (RFC 9449 sections 8 and 9). Replicas with the same secret accept each other's nonces; nonces are not stored. */
export type ProofNonces = ReturnType<typeof createProofNonces>;

/** How long a nonce is given out; it is accepted for as long again. */
const windowMs = 300_000;

/** `now`: milliseconds since the epoch. A nonce is a keyed digest of its time, so a client cannot compute the next one. */
export function createProofNonces(secret: string, clockToleranceMs: number, now: () => number) {
  const nonceAt = (ms: number) =>
    createHmac('sha256', secret)
      .update(`dpop-nonce ${Math.floor(ms / windowMs)}`)
      .digest('base64url');
  return {
    current: () => nonceAt(now()),
    // The clock of the replica that issued the nonce may be ahead.
    accepts: (nonce: unknown) => [0, -windowMs, clockToleranceMs].some((ms) => nonceAt(now() + ms) === nonce),
  };
}
