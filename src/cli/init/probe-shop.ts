import { readJwks } from '../../access/key-document.ts';
import { type ErrorFormat, errorFormats, errorMediaTypes } from '../../http/rejection.ts';
import { isObject, type JsonObject, parseJsonObject } from '../../lib/json.ts';
import { addressOf, findRefusedAnswers } from '../shop-answer.ts';

/** What the shop's public answers tell. */
export interface ShopFacts {
  /** Status of a GET of the address; undefined: no answer. */
  readonly status?: number;
  /** Why there is no answer. */
  readonly fault?: string | undefined;
  readonly jwks?: string | undefined;
  /** Algorithms of the keys that shopward supports. */
  readonly algorithms: readonly string[];
  /** From the discovery document. */
  readonly issuer?: string | undefined;
  /** The format of its errors. Undefined: its 404 has an unknown format. */
  readonly errors?: ErrorFormat | undefined;
  /** Why the proxy would refuse answers of the shop. */
  readonly refused: readonly string[];
}

/** Limits of each of at most 14 requests, so that a shop that hangs costs little time. */
const timeoutMs = 2000;
const maxBytes = 256 * 1024;

const discoveryPaths = ['/.well-known/openid-configuration', '/.well-known/oauth-authorization-server'];
/** No resource has this path. It is asked below the prefix: elsewhere, errors may look different. */
const missingPath = '/shopward-init';
const jwksPath = '/.well-known/jwks.json';

/**
 * Asks whether the shop answers and where its keys are: by its discovery document (OpenID Connect Discovery 1.0 section 4, RFC
 * 8414 section 3), else at the usual path, below its prefix and at the root. Only GET; redirects are not followed.
 */
export async function probeShop(address: URL): Promise<ShopFacts> {
  const base = address.href.replace(/\/$/, '');
  const found = await get(base);
  const refused = await findRefusedAnswers(
    addressOf(address),
    ['', missingPath].map((path) => new URL(base + path).pathname),
    timeoutMs,
  );
  // The HTTP client may fail to read an answer that the proxy's parser refuses.
  if ('fault' in found) {
    return { fault: refused.length > 0 ? undefined : found.fault, algorithms: [], refused };
  }
  const errors = await errorsOf(base + missingPath);
  const facts: ShopFacts = { status: found.status, algorithms: [], errors, refused };
  const bases = [...new Set([base, address.origin])];
  for (const one of bases.flatMap((base) => discoveryPaths.map((path) => base + path))) {
    const { jwks_uri: jwks, issuer } = (await getJson(one)) ?? {};
    if (isForeign(jwks, address)) continue;
    const algorithms = await algorithmsAt(jwks);
    if (typeof jwks === 'string' && algorithms.length > 0) {
      return { ...facts, jwks, algorithms, issuer: typeof issuer === 'string' ? issuer : undefined };
    }
  }
  for (const base of bases) {
    const algorithms = await algorithmsAt(base + jwksPath);
    if (algorithms.length > 0) return { ...facts, jwks: base + jwksPath, algorithms };
  }
  return facts;
}

/** The format of the answer to a path that does not exist, by its media type. */
async function errorsOf(url: string): Promise<ErrorFormat | undefined> {
  const reply = await get(url);
  if ('fault' in reply || reply.status < 400) return undefined;
  const type = reply.type.split(';', 1)[0]?.trim().toLowerCase();
  return errorFormats.find((format) => errorMediaTypes[format] === type);
}

/** Whether a key set is at another host, or uses http where the shop uses https: others could sign tokens. */
function isForeign(jwks: unknown, address: URL): boolean {
  if (typeof jwks !== 'string' || !URL.canParse(jwks)) return false;
  const { protocol, hostname } = new URL(jwks);
  return hostname !== address.hostname || (address.protocol === 'https:' && protocol !== 'https:');
}

/** The algorithms that the keys of a set sign with; empty: there is no set, or no usable key. */
export async function algorithmsAt(url: unknown): Promise<string[]> {
  if (typeof url !== 'string' || !/^https?:\/\//i.test(url) || !URL.canParse(url)) return [];
  const document = await getJson(url);
  const keys = Array.isArray(document?.keys) ? document.keys.filter(isObject) : [];
  const algorithms = keys.map(algorithmOf).filter((one) => one !== undefined);
  return [...new Set(algorithms)].filter((one) => readJwks(document, [one]).keys.length > 0).toSorted();
}

/** `alg` of a key, or the usual algorithm for its type. */
function algorithmOf({ alg, kty, crv }: JsonObject): string | undefined {
  if (typeof alg === 'string') return alg;
  if (kty === 'RSA') return 'RS256';
  if (kty === 'OKP') return 'EdDSA';
  return { 'P-256': 'ES256', 'P-384': 'ES384', 'P-521': 'ES512' }[String(crv)];
}

async function getJson(url: string): Promise<JsonObject | undefined> {
  const reply = await get(url);
  return 'fault' in reply || reply.status !== 200 ? undefined : parseJsonObject(reply.body);
}

interface Reply {
  readonly status: number;
  /** Empty if it is too long or late. */
  readonly body: Buffer;
  /** `Content-Type`, or nothing. */
  readonly type: string;
}

async function get(url: string): Promise<Reply | { readonly fault: string }> {
  let head: { readonly status: number; readonly type: string } | undefined;
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetch(url, { redirect: 'manual', signal });
    head = { status: response.status, type: response.headers.get('content-type') ?? '' };
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of response.body ?? []) {
      length += chunk.length;
      if (length > maxBytes) return { ...head, body: Buffer.alloc(0) };
      chunks.push(chunk);
    }
    return { ...head, body: Buffer.concat(chunks) };
  } catch (cause) {
    if (head !== undefined) return { ...head, body: Buffer.alloc(0) };
    const { name, cause: reason } = cause as Error & { readonly cause?: { readonly code?: string } };
    return { fault: name === 'TimeoutError' ? 'no answer in 2 s' : (reason?.code ?? 'no HTTP') };
  }
}
