import { fetchJwks, type JwksError } from './jwks-fetch.ts';
import { createKeyChange } from './key-change.ts';
import { readJwks } from './key-document.ts';
import { createKeySet, type KeySet, mergeKeys } from './key-set.ts';
import type { KeyLookup, KeySource } from './key-source.ts';
import type { TokenHeader } from './token-header.ts';

export interface JwksKeySourceOptions {
  /** `http` or `https`, without user and fragment: the configuration has seen to it. */
  readonly url: string;
  readonly algorithms: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** For one fetch. Default 5 s. */
  readonly timeoutMs?: number;
  /** Least time between two fetches that requests asked for. Default 30 s. */
  readonly cooldownMs?: number;
  /** Between two fetches in the background: how long a removed key can still be used. Default 5 min. */
  readonly refreshMs?: number;
  /** Of the document. Default 256 KiB. */
  readonly maxBytes?: number;
  /** Requests that may wait for a fetch at one time; others are told to come again. Default 256. */
  readonly maxWaiting?: number;
  /** Called behind each fetch, with why it failed. Must not throw. */
  readonly onLoad?: (error: JwksError | undefined) => void;
  /** Runs something later; returns the way to stop it. Default: a timer that keeps no process alive. */
  readonly schedule?: (run: () => void, delayMs: number) => () => void;
}

export interface JwksKeySource extends KeySource {
  /** Fetches now, whatever cooldown holds; one fetch at a time. Never rejects. */
  refresh(): Promise<void>;
}

/**
 * Keys at a JWKS URL. Fetched in the background; the last good keys stay for as long as the source is down or sends
 * nothing usable. A `kid` that nobody knows has the keys fetched again, at most once per cooldown, whether that fetch
 * succeeds or fails. As long as there were no keys at all, attempts back off from 1 s to the cooldown.
 */
export function createJwksKeySource(options: JwksKeySourceOptions): JwksKeySource {
  const { url, algorithms, now, timeoutMs = 5_000, maxBytes = 256 * 1024, maxWaiting = 256 } = options;
  const { cooldownMs = 30_000, refreshMs = 300_000, schedule = scheduleTimer } = options;
  const change = createKeyChange();
  const closing = new AbortController();
  const count = { loads: 0, failures: 0, unusableKeys: 0 };
  let set: KeySet | undefined;
  let lastSuccessMs: number | undefined;
  let lastError: JwksError | undefined;
  let failuresInARow = 0;
  let flight: Promise<void> | undefined;
  let nextDemandMs = Number.NEGATIVE_INFINITY;
  let waiting = 0;
  let stopTimer = () => {};

  function refresh(): Promise<void> {
    if (closing.signal.aborted) return Promise.resolve();
    flight ??= load().finally(() => {
      flight = undefined;
      plan(lastError === undefined ? refreshMs : backoffMs());
    });
    return flight;
  }

  function plan(delayMs: number): void {
    stopTimer();
    if (!closing.signal.aborted) stopTimer = schedule(() => void refresh(), delayMs);
  }

  function backoffMs(): number {
    return Math.min(cooldownMs, 1000 * 2 ** Math.min(failuresInARow - 1, 30));
  }

  async function load(): Promise<void> {
    const fetched = await fetchJwks({ url, timeoutMs, maxBytes, signal: closing.signal });
    count.loads++;
    lastError = 'error' in fetched ? fetched.error : tryAccept(fetched.value);
    options.onLoad?.(lastError);
    if (lastError === undefined) {
      failuresInARow = 0;
      lastSuccessMs = now();
      return;
    }
    count.failures++;
    failuresInARow++;
    nextDemandMs = now() + (set === undefined ? backoffMs() : cooldownMs);
  }

  /** Nothing that a source sends may end the process. */
  function tryAccept(value: unknown): JwksError | undefined {
    try {
      return accept(value);
    } catch {
      return 'malformed';
    }
  }

  /** Takes a key set over, or says why the last good one stays. */
  function accept(value: unknown): JwksError | undefined {
    const document = readJwks(value, algorithms);
    const { keys, ambiguousKids } = mergeKeys(document.keys);
    if (keys.length === 0) return document.isKeySet ? 'empty' : 'malformed';
    if (ambiguousKids.length > 0) return 'ambiguous';
    count.unusableKeys = document.problems.length + document.ignored.length;
    const next = createKeySet(keys);
    if (set?.isSameAs(next)) return undefined;
    set = next;
    change.tell();
    return undefined;
  }

  /** A fetch that a request asked for: the one under way, else a new one where the cooldown lets it. */
  async function demand(): Promise<void> {
    if (flight !== undefined) return flight;
    if (now() < nextDemandMs) return;
    nextDemandMs = now() + cooldownMs;
    await refresh();
  }

  function isDemandFutile(): boolean {
    return closing.signal.aborted || (flight === undefined && now() < nextDemandMs);
  }

  async function wait<T>(result: () => T | undefined, otherwise: () => T): Promise<T> {
    waiting++;
    try {
      // Twice: a fetch that was under way already may have seen the keys of before.
      await demand();
      if (result() === undefined) await demand();
    } finally {
      waiting--;
    }
    return result() ?? otherwise();
  }

  function findNow(header: TokenHeader): KeyLookup | undefined {
    const keys = set?.find(header) ?? [];
    const isKnown = keys.length > 0 || (header.kid !== undefined && set?.knows(header.kid));
    return isKnown ? { keys } : undefined;
  }

  /** While the source is down nobody can say that a key does not exist. */
  function notFound(): KeyLookup {
    return set === undefined || lastError !== undefined ? unavailable() : { keys: [] };
  }

  function unavailable(): KeyLookup {
    const delayMs = flight === undefined ? nextDemandMs - now() : 0;
    return { retryAfterSeconds: Math.max(1, Math.ceil(delayMs / 1000)) };
  }

  return {
    refresh,
    start: refresh,
    onChange: change.onChange,
    keysFor(header) {
      const found = findNow(header);
      if (found !== undefined) return found;
      if (isDemandFutile()) return notFound();
      return waiting >= maxWaiting ? unavailable() : wait(() => findNow(header), notFound);
    },
    renew(header, tried) {
      const untried = () => set?.findUntried(header, tried) ?? [];
      const found = untried();
      if (found.length > 0 || isDemandFutile() || waiting >= maxWaiting) return found;
      return wait(() => (untried().length > 0 ? untried() : undefined), untried);
    },
    status: () => ({ kind: 'jwks', keys: set?.keys.length ?? 0, ...count, lastSuccessMs, lastError }),
    close() {
      closing.abort();
      stopTimer();
    },
  };
}

function scheduleTimer(run: () => void, delayMs: number): () => void {
  const timer = setTimeout(run, delayMs).unref();
  return () => clearTimeout(timer);
}
