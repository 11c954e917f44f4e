import { type FieldList, fieldValue, fieldValues } from '../http/field-list.ts';
import { withinTime } from '../lib/eventually.ts';
import type { FairSemaphore, Permit } from '../lib/fair-semaphore.ts';
import { isObject, parseJson } from '../lib/json.ts';
import { contentType, type Mapping, readDocument } from './envelope.ts';
import type { Partition } from './partition.ts';

/** The port to the shop; implemented over the client of the upstream. */
export type AskUpstream = (request: LookupRequest) => Promise<LookupResponse | LookupError>;

/** A GET without a body. Of the client's request it has only what is in the key. */
interface LookupRequest {
  /** Request target, byte for byte. */
  readonly target: string;
  /** All fields. `Host` is among them only where the shop chooses its store by it; otherwise the upstream's is sent. */
  readonly fields: FieldList;
  /** Milliseconds in which the response has to be complete; the exchange is then to be aborted. */
  readonly timeoutMs: number;
  /** Bytes of the longest body; a longer one is `too-large`. */
  readonly maxBodyBytes: number;
}

/** A complete response as it came, with no redirect followed and no content coding decoded. */
interface LookupResponse {
  readonly status: number;
  readonly fields: FieldList;
  readonly body: Buffer;
}

/** No complete response. `invalid`: bytes that are not HTTP, or a cut body. */
export interface LookupError {
  readonly fault: 'unreachable' | 'timeout' | 'invalid' | 'overloaded' | 'too-large';
}

interface UpstreamSourceOptions {
  readonly ask: AskUpstream;
  /** Path of the shop's resolver. */
  readonly path: string;
  /** Milliseconds to the complete response, including the wait for a permit. */
  readonly timeoutMs: number;
  readonly permits: Pick<FairSemaphore, 'acquire'>;
  /** Types that an answer may have. */
  readonly entityTypes: readonly string[];
  /** Called with an exception of `ask`, which is a bug. */
  readonly onException: (cause: unknown) => void;
}

/** Asks the shop's own resolver, with nothing but what is in the key. */
export class UpstreamSource {
  readonly #options: UpstreamSourceOptions;
  #underWay = 0;

  constructor(options: UpstreamSourceOptions) {
    this.#options = options;
  }

  get underWay(): number {
    return this.#underWay;
  }

  /** A permit to ask, or the wait for one; undefined: the queue is full. */
  acquire(client: string): Permit | undefined {
    return this.#options.permits.acquire(client, false, this.#options.timeoutMs);
  }

  /** Asks with the permit, and gives it back. Settles within the time-out, even if the port does not. Never rejects. */
  async ask(url: string, partition: Partition, permit: Permit, waitedMs: number): Promise<LookupOutcome> {
    const leftMs = Math.max(1, this.#options.timeoutMs - waitedMs);
    const exchange = this.#exchange(url, partition, permit, leftMs);
    return withinTime(exchange, leftMs, () => fail('timeout', 'timeout'));
  }

  /** Keeps its permit until the port has answered, also after the deadline: the upstream is still busy with it. */
  async #exchange(
    url: string,
    partition: Partition,
    permit: Permit,
    timeoutMs: number,
  ): Promise<LookupOutcome> {
    this.#underWay += 1;
    try {
      const response = await this.#options.ask(this.#requestFor(url, partition, timeoutMs));
      if (!('fault' in response)) {
        return validateResponse(response, this.#options.entityTypes);
      }
      const { fault } = response;
      return fault === 'too-large' ? fail('unrecognized', fault) : fail(fault, fault);
    } catch (cause) {
      this.#options.onException(cause);
      return fail('unreachable', 'exception');
    } finally {
      this.#underWay -= 1;
      permit.release();
    }
  }

  #requestFor(url: string, { locale, store, host }: Partition, timeoutMs: number): LookupRequest {
    const fields = ['Accept', contentType, 'Accept-Encoding', 'identity', 'Accept-Language', locale];
    let target = `${this.#options.path}?url=${encodeURIComponent(url)}`;
    if (store !== '') {
      // Shops take the store from the field or the query; with the same value in both, the answer is that of the key.
      if (fieldText.test(store)) fields.push('Store', store);
      target += `&_store=${encodeURIComponent(store)}`;
    }
    if (host !== '') fields.push('Host', host);
    return { target, fields, timeoutMs, maxBodyBytes: maxResponseBytes };
  }
}

/** A store that can be a field value (RFC 9110 section 5.5); any other one is sent in the query alone. */
const fieldText = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** A resolver document has some 300 bytes. */
const maxResponseBytes = 64 * 1024;

/**
 * Checks the shop's response: a 200 with the envelope or, by the contract, a 404 with code 2802 or a 422 with code 2801. A 5xx
 * is a failure of the shop, any other response is unrecognized; neither is kept. Exported for its tests.
 */
export function validateResponse(response: LookupResponse, entityTypes: readonly string[]): LookupOutcome {
  const { status, body, fields } = response;
  if (status >= 500) return fail('invalid', 'status-5xx');
  if (status >= 300 && status < 400) return fail('unrecognized', 'redirect');
  if (status !== 200 && status !== 404 && status !== 422) return fail('unrecognized', 'status');
  if (body.length > maxResponseBytes) return fail('unrecognized', 'too-large');
  const document = isPlainJson(fields) ? parseJson(body) : undefined;
  if (document === undefined) return fail('unrecognized', 'not-json');
  const keep = mayKeep(fields);
  if (status === 200) {
    const mapping = readDocument(document, entityTypes);
    return mapping === undefined
      ? fail('unrecognized', 'not-the-envelope')
      : { kind: 'found', mapping, keep };
  }
  if (status === 404 && hasCode(document, '2802')) return { kind: 'unknown', keep };
  if (status === 422 && hasCode(document, '2801')) return { kind: 'missing' };
  return fail('unrecognized', 'status');
}

function hasCode(document: unknown, code: string): boolean {
  const errors = isObject(document) ? document.errors : undefined;
  return Array.isArray(errors) && errors.some((error: unknown) => isObject(error) && error.code === code);
}

/** Whether a response is JSON without a content coding. */
function isPlainJson(fields: FieldList): boolean {
  const type = fieldValue(fields, 'content-type') ?? '';
  const coding = fieldValue(fields, 'content-encoding') ?? 'identity';
  return (
    /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type.trim()) && coding.toLowerCase() === 'identity'
  );
}

/**
 * Whether a response may be kept: it has neither `no-store`, with or without an argument (RFC 9111 section 5.2), nor a cookie.
 * `private` and `no-cache`, which the shop's framework adds to every response, do not count: the request had nothing of any
 * user, so neither has the response.
 */
function mayKeep(fields: FieldList): boolean {
  const directives = fieldValues(fields, 'cache-control').join(',').toLowerCase().split(',');
  const isForbidden = directives.some((one) => one.split('=', 1)[0]?.trim() === 'no-store');
  return !isForbidden && fieldValue(fields, 'set-cookie') === undefined;
}

/** The checked answer of a source about one URL. */
export type LookupOutcome =
  /** `keep` false: the response forbade to store it. */
  | { readonly kind: 'found'; readonly mapping: Mapping; readonly keep: boolean }
  | { readonly kind: 'unknown'; readonly keep: boolean }
  /** To the shop the value is empty (422 with code 2801), such as `0`. */
  | { readonly kind: 'missing' }
  | LookupFailure;

/** No answer, and nothing to keep. `unrecognized`: a complete response of another form, so the request is forwarded. */
export interface LookupFailure {
  readonly kind: 'failed';
  readonly fault: 'unreachable' | 'timeout' | 'invalid' | 'overloaded' | 'unrecognized';
  /** Stable word for logs and metrics. */
  readonly reason: string;
}

export function fail(fault: LookupFailure['fault'], reason: string): LookupFailure {
  return { kind: 'failed', fault, reason };
}
