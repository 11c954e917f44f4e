/** Why no key set came: stable words for log, metrics and `/readyz`. */
export type JwksError =
  /** No connection, or it broke. */
  | 'unreachable'
  | 'timeout'
  /** A status other than 200. */
  | 'status'
  /** 3xx: never followed, since whoever can redirect could choose our keys. */
  | 'redirect'
  | 'too-large'
  /** Not JSON, or not a JWK set. */
  | 'malformed'
  /** No usable key in it. */
  | 'empty'
  /** Two different keys of one `kid`. */
  | 'ambiguous';

interface JwksFetchOptions {
  readonly url: string;
  /** Milliseconds for the whole exchange. */
  readonly timeoutMs: number;
  /** Bytes of the document, after content decoding. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** Gets the JSON of a key set; never rejects. */
export async function fetchJwks(
  options: JwksFetchOptions,
): Promise<{ value: unknown } | { error: JwksError }> {
  const deadline = AbortSignal.timeout(options.timeoutMs);
  try {
    const response = await fetch(options.url, {
      headers: { accept: 'application/jwk-set+json, application/json;q=0.9' },
      redirect: 'manual',
      signal: AbortSignal.any([deadline, options.signal]),
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      return { error: response.status >= 300 && response.status < 400 ? 'redirect' : 'status' };
    }
    const text = await readText(response, options.maxBytes);
    return text === undefined ? { error: 'too-large' } : parse(text);
  } catch {
    return { error: deadline.aborted ? 'timeout' : 'unreachable' };
  }
}

/** Undefined as soon as there are too many bytes; the rest is not read. */
async function readText(response: Response, maxBytes: number): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.byteLength;
    if (length > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parse(text: string): { value: unknown } | { error: JwksError } {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { error: 'malformed' };
  }
}

/** A token bucket: `burst` fetches, and one more for each `intervalMs`. A clock that is set back costs nothing. */
export class FetchBudget {
  readonly #burst: number;
  readonly #intervalMs: number;
  #left: number;
  #countedMs = Number.NEGATIVE_INFINITY;
  #closed: { readonly fromMs: number; readonly untilMs: number } | undefined;

  constructor(burst: number, intervalMs: number) {
    this.#burst = burst;
    this.#left = burst;
    this.#intervalMs = intervalMs;
  }

  /** Milliseconds until a fetch may be asked for; 0: now. */
  restMs(nowMs: number): number {
    this.#count(nowMs);
    const closedMs = this.#closed === undefined ? 0 : this.#closed.untilMs - nowMs;
    return Math.max(0, closedMs, (1 - this.#left) * this.#intervalMs);
  }

  isClosed(nowMs: number): boolean {
    this.#count(nowMs);
    return this.#closed !== undefined;
  }

  spend(nowMs: number): void {
    this.#count(nowMs);
    this.#left -= 1;
  }

  /** No fetch for so long, whatever is left. */
  close(nowMs: number, durationMs: number): void {
    this.#closed = { fromMs: nowMs, untilMs: nowMs + durationMs };
  }

  #count(nowMs: number): void {
    const passedMs = Math.max(0, nowMs - this.#countedMs);
    this.#left = Math.min(this.#burst, this.#left + passedMs / this.#intervalMs);
    this.#countedMs = nowMs;
    if (this.#closed !== undefined && (nowMs >= this.#closed.untilMs || nowMs < this.#closed.fromMs)) {
      this.#closed = undefined;
    }
  }
}
