import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type CanonicalRequest, methods } from '../http/canonical-request.ts';
import { type FieldList, fieldValue, joinFields } from '../http/field-list.ts';
import { generateRequestId, plainAddress } from '../http/peer.ts';
import { type Answer, isFailureOfShop, type Rejection, reject, type Sender } from '../http/rejection.ts';
import type { RejectionBodies } from '../http/rejection-bodies.ts';
import { endResponse, mustClose, writeRejection } from '../http/write-response.ts';
import { type ExchangeRecord, type RedactPath, redactUserAgent } from '../telemetry/exchange-record.ts';
import type { ForwardCaller, ForwardResult } from '../upstream/forward.ts';
import type { Handled } from './client-connection.ts';
import type { Slot } from './in-flight.ts';
import { type createOwnFields, toPrivate } from './own-fields.ts';

export interface ExchangeContext {
  readonly rejections: RejectionBodies;
  readonly ownFields: ReturnType<typeof createOwnFields>;
  readonly redactPath: RedactPath;
  /** Whether a drain has begun to cut requests, and how many it cut. */
  readonly cut: { isDue: boolean; requests: number };
  /** `request`: undefined if it was malformed; `sender`: the user of the verified token. */
  record(record: ExchangeRecord, request?: CanonicalRequest, sender?: Sender): void;
  /** A bug or an impossible state, which a person should look at. */
  onFault(fault: unknown, requestId: string): void;
}

/** One request, its one response, and all that is known of both. Only this class ends an exchange. */
export class Exchange implements ForwardCaller, Handled {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly slot: Slot;
  route = '*';
  request: CanonicalRequest | undefined;
  observed: Rejection | undefined;
  sender: Sender | undefined;
  isPrivate = false;
  variesByCookie = false;
  responseFields: FieldList | undefined;
  readonly startedMs = performance.now();
  readonly #context: ExchangeContext;
  #isRecorded = false;
  #isOver = false;
  #malformed: MalformedRequest | undefined;

  constructor(incoming: IncomingMessage, response: ServerResponse, slot: Slot, context: ExchangeContext) {
    this.incoming = incoming;
    this.response = response;
    this.slot = slot;
    this.#context = context;
  }

  /** Computed only for a malformed request. */
  get malformed(): MalformedRequest {
    this.#malformed ??= readMalformedRequest(this.incoming.method, this.incoming.url);
    return this.#malformed;
  }

  get socket() {
    return this.incoming.socket;
  }

  /** Notes a refusal that observe mode does not enforce; only the first one counts. */
  observe(rejection: Rejection): void {
    this.observed ??= rejection;
    this.sender ??= rejection.sender;
  }

  refuse(rejection: Rejection): void {
    this.sender ??= rejection.sender;
    const { status, bytes } = this.#writeRejection(rejection);
    this.#record({ decision: status === 0 ? 'aborted' : 'refused', status, bytes, rejection });
  }

  /** A bug or an impossible state: the client gets 500, or its connection ends. */
  fail(fault: unknown): void {
    this.#context.onFault(fault, this.request?.requestId ?? this.malformed.requestId);
    this.refuse(reject('internal-error', { reason: codeOf(fault) ?? 'fault' }));
  }

  #ownFields(): FieldList {
    const { ownFields } = this.#context;
    if (this.request === undefined)
      return ownFields.ofMalformed(this.incoming.headers.origin, this.malformed.requestId);
    const own = ownFields.of(this.request);
    return this.responseFields === undefined ? own : joinFields(own, this.responseFields);
  }

  /** The fields of an answer, with `Cache-Control: private` if shared caches must not store the answer. */
  #withPrivacy(fields: FieldList): string[] {
    return this.isPrivate ? toPrivate(fields, this.variesByCookie) : (fields as string[]);
  }

  /** Only the first call counts. */
  #record(outcome: Outcome): void {
    if (this.#isRecorded) return;
    this.#isRecorded = true;
    if (this.#isOver) this.slot.leave();
    const { record, redactPath, cut } = this.#context;
    const isCut = cut.isDue && outcome.decision === 'aborted';
    if (isCut) cut.requests += 1;
    const known = isCut ? { ...outcome, fault: 'drain' } : outcome;
    record(toExchangeRecord(this, known, redactPath), this.request, this.sender);
  }

  /** A request whose client has left counts until its work ends, such as the wait for another write. */
  ended(): void {
    this.#isOver = true;
    if (this.#isRecorded) this.slot.leave();
  }

  answer({ status, fields, body }: Answer): void {
    const { incoming, response } = this;
    if (response.destroyed) {
      this.#record({ decision: 'aborted', status: 0, bytes: 0 });
      return;
    }
    if (mustClose(incoming)) response.shouldKeepAlive = false;
    response.writeHead(status, this.#withPrivacy(joinFields(fields, this.#ownFields())));
    endResponse(incoming, response, body ?? undefined);
    const bytes = incoming.method === 'HEAD' ? 0 : Buffer.byteLength(body ?? '');
    this.#record({ decision: 'answered', status, bytes });
  }

  /** The forwarder is done; if it returns a rejection, this writes it. */
  conclude(result: ForwardResult): void {
    try {
      const { rejection, upstreamMs } = result;
      const fault = codeOf(result.cause) ?? result.fault;
      if (rejection !== undefined) {
        const { status, bytes } = this.#writeRejection(rejection);
        this.#record({ decision: 'refused', status, bytes, rejection, upstreamMs, fault });
      } else {
        const decision = result.end === 'sent' ? 'forwarded' : 'aborted';
        this.#record({ decision, status: result.status, bytes: result.bytes, upstreamMs, fault });
      }
    } catch (bug) {
      this.fail(bug);
    }
  }

  editResponse(fields: FieldList): FieldList {
    if (this.request === undefined) return fields;
    const edited = this.#context.ownFields.editForwarded(fields, this.request);
    return this.#withPrivacy(
      this.responseFields === undefined ? edited : [...edited, ...this.responseFields],
    );
  }

  #writeRejection(rejection: Rejection): ReturnType<typeof writeRejection> {
    const { incoming, response } = this;
    return writeRejection(incoming, response, rejection, this.#context.rejections, this.#ownFields());
  }
}

type MalformedRequest = ReturnType<typeof readMalformedRequest>;

/**
 * What may be logged of a request that was refused before it could be parsed. `target`: undefined if not even a request line
 * was read.
 */
export function readMalformedRequest(method?: string, target?: string) {
  return {
    // `X-Request-Id` of the request was not read.
    requestId: generateRequestId(),
    method: methods.find((one) => one === method) ?? ('other' as const),
    segments: target?.startsWith('/') ? plainSegments(target) : [],
  };
}

const maxSegments = 16;
const plain = /^[A-Za-z0-9._~-]*$/;

/** Cuts everything from the first segment that is not `plain`: a token may follow an escaped name. */
function plainSegments(target: string): string[] {
  const [path = ''] = target.slice(1, 4096).split('?');
  const segments = path.split('/');
  const odd = segments.findIndex((segment) => !plain.test(segment));
  const end = Math.min(odd < 0 ? segments.length : odd, maxSegments);
  return end === segments.length ? segments : [...segments.slice(0, end), '…'];
}

type ExchangeMeta = Pick<Exchange, 'malformed' | 'route' | 'startedMs' | 'socket'> &
  Partial<Pick<Exchange, 'request' | 'observed'>>;

interface Outcome {
  readonly decision: ExchangeRecord['decision'];
  /** 0: no response was sent. */
  readonly status: number;
  readonly bytes: number;
  readonly rejection?: Rejection | undefined;
  readonly upstreamMs?: number | undefined;
  readonly fault?: string | undefined;
}

export function toExchangeRecord(
  meta: ExchangeMeta,
  outcome: Outcome,
  redactPath: RedactPath,
): ExchangeRecord {
  const { request, observed } = meta;
  const { rejection, decision } = outcome;
  const isOfShop = decision === 'refused' && rejection && isFailureOfShop(rejection.rejection);
  return {
    requestId: request?.requestId ?? meta.malformed.requestId,
    method: request?.method ?? meta.malformed.method,
    route: meta.route,
    path: redactPath(request?.segments ?? meta.malformed.segments),
    decision: isOfShop ? 'failed' : decision,
    status: outcome.status,
    rejection: rejection?.rejection,
    reason: (rejection ?? observed)?.reason,
    observed: observed?.rejection,
    durationMs: rounded(performance.now() - meta.startedMs),
    upstreamMs: outcome.upstreamMs && rounded(outcome.upstreamMs),
    bytesIn: countReceived(meta.socket),
    bytesOut: outcome.bytes,
    userAgent: redactUserAgent(request && fieldValue(request.fields, 'user-agent')),
    clientAddress: request?.clientAddress ?? plainAddress(meta.socket.remoteAddress),
    fault: outcome.fault,
  };
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}

const counted = Symbol('octets that are counted');

/** Octets that arrived since the previous exchange. */
function countReceived(socket: Socket & { [counted]?: number }): number {
  const { bytesRead = 0 } = socket;
  const before = socket[counted] ?? 0;
  socket[counted] = bytesRead;
  return bytesRead - before;
}

/** The code word of a fault, such as `ECONNRESET`; never its message. Exported for its tests. */
export function codeOf(fault: unknown): string | undefined {
  const code = (fault as NodeJS.ErrnoException | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}
