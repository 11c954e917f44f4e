import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { type FieldList, joinFields } from '../http/field-list.ts';
import { toPrivate } from '../http/private-response.ts';
import { type Answer, type Rejection, reject, type Sender } from '../http/rejection.ts';
import type { RejectionBodies } from '../http/rejection-bodies.ts';
import { endResponse, mustClose, writeRejection } from '../http/write-response.ts';
import type { ExchangeRecord, RedactPath } from '../telemetry/exchange-record.ts';
import type { ForwardCaller, ForwardResult } from '../upstream/forward.ts';
import type { Handled } from './client-connection.ts';
import {
  codeOf,
  type ExchangeMeta,
  type MalformedRequest,
  type Outcome,
  readMalformedRequest,
  toExchangeRecord,
} from './exchange-meta.ts';
import type { Place } from './in-flight.ts';
import type { OwnFields } from './own-fields.ts';

export interface ExchangeContext {
  readonly rejections: RejectionBodies;
  readonly ownFields: OwnFields;
  readonly redactPath: RedactPath;
  /** `request`: undefined if it was malformed; `sender`: the user of its verified token. */
  record(record: ExchangeRecord, request?: CanonicalRequest, sender?: Sender): void;
  /** A bug or an impossible state, which a person should look at. */
  onFault(fault: unknown, requestId: string): void;
}

/** What an HTTP exchange and a WebSocket handshake share: what is known of them, and their one record. */
export abstract class RecordedExchange implements ExchangeMeta {
  readonly incoming: IncomingMessage;
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
  protected readonly context: ExchangeContext;
  #isRecorded = false;
  #malformed: MalformedRequest | undefined;

  constructor(incoming: IncomingMessage, place: Place, context: ExchangeContext) {
    this.incoming = incoming;
    this.place = place;
    this.context = context;
  }

  /** Computed only for a malformed request. */
  get malformed(): MalformedRequest {
    this.#malformed ??= readMalformedRequest(this.incoming.method, this.incoming.url);
    return this.#malformed;
  }

  get peerAddress(): string {
    return this.incoming.socket.remoteAddress ?? '';
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
    const status = this.writeRejection(rejection);
    this.record({ decision: status === 0 ? 'aborted' : 'refused', status, rejection });
  }

  /** A bug or an impossible state: the client gets 500, or its connection ends. */
  fail(fault: unknown): void {
    this.context.onFault(fault, this.request?.requestId ?? this.malformed.requestId);
    this.refuse(reject('internal-error', { reason: codeOf(fault) ?? 'fault' }));
  }

  /** The status that was sent, 0 for none. */
  protected abstract writeRejection(rejection: Rejection): number;

  protected ownFields(): FieldList {
    const { ownFields } = this.context;
    if (this.request === undefined)
      return ownFields.ofMalformed(this.incoming.headers.origin, this.malformed.requestId);
    const own = ownFields.of(this.request);
    return this.responseFields === undefined ? own : joinFields(own, this.responseFields);
  }

  /** The fields of an answer; where shared caches must not store it, with a field that tells them so. */
  protected withheld(fields: FieldList): string[] {
    return this.isPrivate ? toPrivate(fields, this.variesByCookie) : (fields as string[]);
  }

  /** The first one counts. */
  protected record(outcome: Outcome): void {
    if (this.#isRecorded) return;
    this.#isRecorded = true;
    this.context.record(toExchangeRecord(this, outcome, this.context.redactPath), this.request, this.sender);
  }
}

/** One request, its one response, and what is known of both. Nothing else ends an exchange. */
export class Exchange extends RecordedExchange implements ForwardCaller, Handled {
  readonly response: ServerResponse;

  constructor(incoming: IncomingMessage, response: ServerResponse, place: Place, context: ExchangeContext) {
    super(incoming, place, context);
    this.response = response;
  }

  ended(): void {
    this.place.leave();
  }

  answer({ status, fields, body }: Answer): void {
    const { incoming, response } = this;
    if (response.destroyed) {
      this.record({ decision: 'aborted', status: 0 });
      return;
    }
    if (mustClose(incoming)) response.shouldKeepAlive = false;
    response.writeHead(status, this.withheld(joinFields(fields, this.ownFields())));
    endResponse(incoming, response, body ?? undefined);
    this.record({ decision: 'answered', status });
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
      const status = this.writeRejection(rejection);
      this.record({ decision: 'refused', status, rejection, upstreamMs, fault });
    } else {
      const decision = result.end === 'sent' ? 'forwarded' : 'aborted';
      this.record({ decision, status: result.status, upstreamMs, fault });
    }
  }

  /** Changes to the fields of every forwarded response. */
  editResponse(fields: FieldList): FieldList {
    if (this.request === undefined) return fields;
    const edited = this.context.ownFields.editForwarded(fields, this.request);
    return this.withheld(this.responseFields === undefined ? edited : [...edited, ...this.responseFields]);
  }

  protected writeRejection(rejection: Rejection): number {
    const { rejections } = this.context;
    return writeRejection(this.incoming, this.response, rejection, rejections, this.ownFields());
  }
}
