import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { type FieldList, joinFields } from '../http/field-list.ts';
import { type OwnFields, toPrivate } from './own-fields.ts';
import { type Answer, type Rejection, type Sender, reject } from '../http/rejection.ts';
import type { RejectionBodies } from '../http/rejection-bodies.ts';
import { endResponse, mustClose, writeRejection } from '../http/write-response.ts';
import type { ExchangeRecord, RedactPath } from '../telemetry/exchange-record.ts';
import type { ForwardCaller, ForwardResult } from '../upstream/forward.ts';
import type { Handled } from './client-connection.ts';
import {
  type ExchangeMeta,
  type MalformedRequest,
  type Outcome,
  codeOf,
  readMalformedRequest,
  toExchangeRecord,
} from './exchange-meta.ts';
import type { Place } from './in-flight.ts';

export interface ExchangeContext {
  readonly rejections: RejectionBodies;
  readonly ownFields: OwnFields;
  readonly redactPath: RedactPath;
  /** `request`: undefined if it was malformed; `sender`: the user of its verified token. */
  /** The end of a drain, which cuts requests. */
  readonly cut: { isDue: boolean; requests: number };
  record(record: ExchangeRecord, request?: CanonicalRequest, sender?: Sender): void;
  /** A bug or an impossible state, which a person should look at. */
  onFault(fault: unknown, requestId: string): void;
}

/** One request, its one response, and what is known of both. Nothing else ends an exchange. */
export class Exchange implements ExchangeMeta, ForwardCaller, Handled {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  /** Its entry among all requests in progress. */
  readonly place: Place;
  route = '*';
  /** Once it was understood. */
  request: CanonicalRequest | undefined;
  observed: Rejection | undefined;
  sender: Sender | undefined;
  isPrivate = false;
  variesByCookie = false;
  responseFields: FieldList | undefined;
  readonly startedMs = performance.now();
  readonly #context: ExchangeContext;
  #isRecorded = false;
  #malformed: MalformedRequest | undefined;

  constructor(incoming: IncomingMessage, response: ServerResponse, place: Place, context: ExchangeContext) {
    this.incoming = incoming;
    this.response = response;
    this.place = place;
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

  setRequest(request: CanonicalRequest): void {
    this.request = request;
  }

  /** Notes a refusal that observe mode does not enforce; the first one counts. */
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

  /** The fields of an answer; where shared caches must not store it, with a field that tells them so. */
  #withheld(fields: FieldList): string[] {
    return this.isPrivate ? toPrivate(fields, this.variesByCookie) : (fields as string[]);
  }

  /** The first one counts. */
  #record(outcome: Outcome): void {
    if (this.#isRecorded) return;
    this.#isRecorded = true;
    const { record, redactPath, cut } = this.#context;
    const isCut = cut.isDue && outcome.decision === 'aborted';
    if (isCut) cut.requests += 1;
    const known = isCut ? { ...outcome, fault: 'drain' } : outcome;
    record(toExchangeRecord(this, known, redactPath), this.request, this.sender);
  }

  ended(): void {
    this.place.leave();
  }

  answer({ status, fields, body }: Answer): void {
    const { incoming, response } = this;
    if (response.destroyed) {
      this.#record({ decision: 'aborted', status: 0, bytes: 0 });
      return;
    }
    if (mustClose(incoming)) response.shouldKeepAlive = false;
    response.writeHead(status, this.#withheld(joinFields(fields, this.#ownFields())));
    endResponse(incoming, response, body ?? undefined);
    const bytes = incoming.method === 'HEAD' ? 0 : Buffer.byteLength(body ?? '');
    this.#record({ decision: 'answered', status, bytes });
  }

  /** The forwarder is done; if it returns a rejection, this writes it. */
  conclude(result: ForwardResult): void {
    try {
      this.#conclude(result);
    } catch (fault) {
      this.fail(fault);
    }
  }

  #conclude(result: ForwardResult): void {
    const { rejection, upstreamMs } = result;
    const fault = codeOf(result.cause) ?? result.fault;
    if (rejection !== undefined) {
      const { status, bytes } = this.#writeRejection(rejection);
      this.#record({ decision: 'refused', status, bytes, rejection, upstreamMs, fault });
    } else {
      const decision = result.end === 'sent' ? 'forwarded' : 'aborted';
      this.#record({ decision, status: result.status, bytes: result.bytes, upstreamMs, fault });
    }
  }

  /** Changes to the fields of every forwarded response. */
  editResponse(fields: FieldList): FieldList {
    if (this.request === undefined) return fields;
    const edited = this.#context.ownFields.editForwarded(fields, this.request);
    return this.#withheld(this.responseFields === undefined ? edited : [...edited, ...this.responseFields]);
  }

  #writeRejection(rejection: Rejection): ReturnType<typeof writeRejection> {
    const { incoming, response } = this;
    return writeRejection(incoming, response, rejection, this.#context.rejections, this.#ownFields());
  }
}
