import { setImmediate, setTimeout } from 'node:timers/promises';
import { isolated, isolateLate } from '../lib/faults.ts';
import { isObject } from '../lib/json.ts';
import { readJwks } from './key-document.ts';
import { KeptKeys, type KeyLookup, type Keys, mergeKeys, type TokenHeader } from './key-source.ts';
import { type Fetched, type FetchOptions, fetchJson, type ProviderError } from './provider-fetch.ts';

type Located = { readonly url: string } | { readonly error: ProviderError };

/** Finds the address of a key set; called before each fetch. The caller limits time and size of `get`. */
type LocateKeySet = (get: (url: string) => Promise<Fetched>) => Promise<Located>;

export interface JwksKeySourceOptions {
  /**
   * An address (`http` or `https`, without user and fragment: the configuration ensures that), or a function that finds it.
   */
  readonly url: string | LocateKeySet;
  readonly algorithms: readonly string[];
  readonly now: () => number;
  readonly monotonicNow?: () => number;
  /** Milliseconds for one fetch, finding the address included. Default 5000. */
  readonly timeoutMs?: number;
  /** Shortest time between two fetches that requests ask for, in milliseconds. Default 250. Only tests set it. */
  readonly fetchIntervalMs?: number;
  readonly onDate?: FetchOptions['onDate'];
  /** Called after each fetch, with the reason if it failed. Must not throw. */
  readonly onLoad?: (error: ProviderError | undefined) => void;
  /** Runs a function later; returns one that cancels it. Default: a timer that does not keep the process alive. Only tests set it. */
  readonly schedule?: (run: () => void, delayMs: number) => () => void;
}

const maxBackoffMs = 30_000;
/** Milliseconds between two fetches in the background. A key that the issuer removes stays usable until the next one. */
const refreshMs = 300_000;
const maxDocumentBytes = 256 * 1024;
/** Requests that may wait for a fetch at once; others get 503. */
const maxWaiting = 256;
/** If a request would wait this long (milliseconds) for the next fetch to begin, the keys are unavailable instead. */
const longestWaitMs = 1_000;

/**
 * Keys at a JWKS URL, fetched in the background. The last good keys stay in use while the source is down or sends nothing
 * usable. After failures, attempts in the background back off from 1 s to 30 s.
 *
 * An unknown key id may have just been published. So a token is refused only if a successful fetch that began after its
 * request does not have the key. If the next fetch is too far away or the source is down, the keys are unavailable
 * instead. All requests share these fetches, so invented key ids cause one fetch per interval at most.
 */
export class JwksKeySource extends KeptKeys {
  readonly #options: JwksKeySourceOptions;
  readonly #nowMs: () => number;
  readonly #closing = new AbortController();
  #failuresInARow = 0;
  #flight: Promise<void> | undefined;
  /** How many fetches have begun, and the number of the last successful one. */
  #begun = 0;
  #lastGood = 0;
  #waiting = 0;
  /** Until these monotonic times requests cause no fetch: the first is set by their last fetch, the second by a failure. */
  #nextAskMs = 0;
  #downUntilMs = 0;
  #stopTimer = () => {};

  constructor(options: JwksKeySourceOptions) {
    super('jwks');
    this.#options = options;
    this.#nowMs = options.monotonicNow ?? (() => performance.now());
  }

  /** Fetches now, without waiting for the pause between fetches; joins a fetch in progress. Never rejects. */
  refresh(): Promise<void> {
    return this.#fetchAfter(0);
  }

  #fetchAfter(delayMs: number): Promise<void> {
    if (this.#closing.signal.aborted) return Promise.resolve();
    this.#flight ??= this.#load(delayMs).finally(() => {
      this.#flight = undefined;
      this.#plan(this.#failuresInARow === 0 ? refreshMs : this.#backoffMs());
    });
    return this.#flight;
  }

  override keysFor(header: TokenHeader, tried?: Keys): KeyLookup | Promise<KeyLookup> {
    const found = this.#find(header, tried);
    if (found !== undefined) return found;
    if (this.#isFutile() || this.#waiting >= maxWaiting) return this.#unavailable();
    return this.#wait(() => this.#find(header, tried));
  }

  close(): void {
    this.#closing.abort();
    this.#stopTimer();
  }

  #find(header: TokenHeader, tried?: Keys): KeyLookup | undefined {
    const keys = this.find(header, tried);
    const isKnown = keys.length > 0 || (header.kid !== undefined && this.knows(header.kid));
    return isKnown ? { keys } : undefined;
  }

  async #wait(find: () => KeyLookup | undefined): Promise<KeyLookup> {
    const cameAfter = this.#begun;
    this.#waiting++;
    try {
      // Twice: a fetch that had already begun may have read the previous keys.
      for (let fetches = 0; fetches < 2 && this.#lastGood <= cameAfter; fetches++) {
        await this.#fetchOnDemand();
        const found = find();
        if (found !== undefined) return found;
      }
    } finally {
      this.#waiting--;
    }
    return this.#lastGood > cameAfter ? { keys: [] } : this.#unavailable();
  }

  async #fetchOnDemand(): Promise<void> {
    if (this.#flight !== undefined) return this.#flight;
    if (this.#isFutile()) return;
    const delayMs = this.#mayFetchMs();
    this.#nextAskMs = this.#nowMs() + delayMs + (this.#options.fetchIntervalMs ?? 250);
    await this.#fetchAfter(delayMs);
  }

  /** The next fetch is too far away to wait for, or one has failed and no new one has begun. */
  #isFutile(): boolean {
    const isDown = this.#flight === undefined && this.#nowMs() < this.#downUntilMs;
    return isDown || this.#mayFetchMs() >= longestWaitMs;
  }

  /** Milliseconds until a request may ask for a fetch or join one; 0: now. */
  #mayFetchMs(): number {
    if (this.#closing.signal.aborted) return Number.POSITIVE_INFINITY;
    if (this.#flight !== undefined) return 0;
    return Math.max(0, Math.max(this.#nextAskMs, this.#downUntilMs) - this.#nowMs());
  }

  #unavailable(): KeyLookup {
    const seconds = Math.ceil(this.#mayFetchMs() / 1000);
    return { retryAfterSeconds: Number.isFinite(seconds) ? Math.max(1, seconds) : 1 };
  }

  #plan(delayMs: number): void {
    this.#stopTimer();
    const { schedule = scheduleTimer } = this.#options;
    if (!this.#closing.signal.aborted) this.#stopTimer = schedule(() => isolateLate(this.refresh()), delayMs);
  }

  #backoffMs(): number {
    return Math.min(maxBackoffMs, 1000 * 2 ** Math.min(this.#failuresInARow - 1, 30));
  }

  async #load(delayMs: number): Promise<void> {
    const { onLoad } = this.#options;
    // Not before the next tick, so that all requests of this tick share the fetch.
    await (delayMs > 0 ? setTimeout(delayMs) : setImmediate());
    const fetchNumber = ++this.#begun;
    const fetched = await this.#fetch();
    const error = 'error' in fetched ? fetched.error : this.#accept(fetched.value);
    if (error !== undefined) this.failed(error);
    onLoad?.(error);
    if (error === undefined) {
      this.#failuresInARow = 0;
      this.#lastGood = fetchNumber;
      return;
    }
    this.#failuresInARow++;
    this.#downUntilMs = this.#nowMs() + (this.current().length === 0 ? this.#backoffMs() : maxBackoffMs);
  }

  async #fetch(): Promise<Fetched> {
    const { url, timeoutMs = 5_000, onDate } = this.#options;
    const bounds = {
      maxBytes: maxDocumentBytes,
      deadline: AbortSignal.timeout(timeoutMs),
      signal: this.#closing.signal,
      onDate,
    };
    const get = (from: string, accept = 'application/json') => fetchJson(from, { accept, ...bounds });
    const located = typeof url === 'string' ? { url } : await url(get);
    return 'error' in located
      ? located
      : get(located.url, 'application/jwk-set+json, application/json;q=0.9');
  }

  /** No document that a source sends may end the process. */
  #accept(value: unknown): ProviderError | undefined {
    try {
      const document = readJwks(value, this.#options.algorithms);
      const { keys, ambiguousKids } = mergeKeys(document.keys);
      if (keys.length === 0) return document.isKeySet ? 'empty' : 'malformed';
      if (ambiguousKids.length > 0) return 'ambiguous';
      this.loaded(keys, document.problems.length + document.ignored.length, this.#options.now());
      return undefined;
    } catch {
      return 'malformed';
    }
  }
}

function scheduleTimer(run: () => void, delayMs: number): () => void {
  const timer = globalThis.setTimeout(isolated(run), delayMs).unref();
  return () => clearTimeout(timer);
}

/**
 * Finds the key set of an issuer in its metadata: RFC 8414 section 3, else OpenID Connect Discovery 1.0 section 4. The
 * `issuer` of a document must equal the configured one octet for octet (RFC 8414 section 3.3): metadata of another issuer
 * would name the keys of that issuer.
 */
export function createDiscovery(issuer: string): LocateKeySet {
  return async (get) => {
    let error: ProviderError = 'status';
    for (const url of metadataUrls(issuer)) {
      const fetched = await get(url);
      const located = 'error' in fetched ? fetched : readMetadata(fetched.value, issuer);
      if ('url' in located) return located;
      // `status`: there was no document. The error of a document that exists is more useful.
      if (error.startsWith('status')) error = located.error;
    }
    return { error };
  };
}

/** Both addresses, for an issuer without query and fragment. Exported for its tests. */
export function metadataUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ];
}

function readMetadata(value: unknown, issuer: string): Located {
  if (!isObject(value)) return { error: 'malformed' };
  if (value.issuer !== issuer) return { error: 'other-issuer' };
  const { jwks_uri: url } = value;
  return typeof url === 'string' && isTrusted(url, issuer) ? { url } : { error: 'key-set-url' };
}

/** Whether the address of the keys is as safe as the metadata: with TLS, or on the same server. */
function isTrusted(text: string, issuer: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || url.origin === new URL(issuer).origin;
}
