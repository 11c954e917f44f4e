import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { FieldList } from '../http/field-list.ts';
import type { Answer, Rejection, Rejections } from '../http/rejection.ts';
import { endResponse, mustClose, writeRejection } from '../http/write-response.ts';
import type { ExchangeRecord, RedactPath } from '../telemetry/exchange-record.ts';
import type { ForwardCaller, ForwardResult } from '../upstream/forward.ts';
import type { Handled } from './client-connection.ts';
import {
  codeOf,
  type ExchangeMeta,
  type Outcome,
  readUnread,
  toExchangeRecord,
  type UnreadRequest,
} from './exchange-meta.ts';
import type { Place } from './in-flight.ts';
import type { OwnFields } from './own-fields.ts';

export interface ExchangeContext {
  readonly rejections: Rejections;
  readonly ownFields: OwnFields;
  readonly redactPath: RedactPath;
  /** `request`: what it was about, where it was understood. */
  record(record: ExchangeRecord, request?: CanonicalRequest): void;
  /** Something broke in a way that a person should look at. */
  onFault(fault: unknown, requestId: string): void;
}

/** One request and its one response, and what is noted of them. The only place that ends an exchange. */
export class Exchange implements ExchangeMeta, ForwardCaller, Handled {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  /** Template of the own endpoint or row that decided; `*` until one did. */
  route = '*';
  /** Once it was understood. */
  request: CanonicalRequest | undefined;
  observed: Rejection | undefined;
  readonly startedMs = performance.now();
  /** Among all that is under way. */
  readonly place: Place;
  readonly #context: ExchangeContext;
  #isRecorded = false;
  #unread: UnreadRequest | undefined;

  constructor(incoming: IncomingMessage, response: ServerResponse, place: Place, context: ExchangeContext) {
    this.incoming = incoming;
    this.response = response;
    this.place = place;
    this.#context = context;
  }

  /** Looked at only for what was not understood. */
  get unread(): UnreadRequest {
    this.#unread ??= readUnread(this.incoming.method, this.incoming.url);
    return this.#unread;
  }

  get peerAddress(): string {
    return this.incoming.socket.remoteAddress ?? '';
  }

  ended(): void {
    this.place.leave();
  }

  /** The request was understood. */
  setRequest(request: CanonicalRequest): void {
    this.request = request;
  }

  /** A refusal that observe mode only notes; the first one counts. */
  observe(rejection: Rejection): void {
    this.observed ??= rejection;
  }

  refuse(rejection: Rejection): void {
    const { incoming, response } = this;
    const status = writeRejection(incoming, response, rejection, this.#context.rejections, this.#ownFields());
    this.#record({ decision: status === 0 ? 'aborted' : 'refused', status, rejection });
  }

  answer({ status, fields, body }: Answer): void {
    const { incoming, response } = this;
    if (response.destroyed) {
      this.#record({ decision: 'aborted', status: 0 });
      return;
    }
    if (mustClose(incoming)) response.shouldKeepAlive = false;
    response.writeHead(status, [...fields, ...this.#ownFields()]);
    endResponse(incoming, response, body ?? undefined);
    this.#record({ decision: 'answered', status });
  }

  /** The forwarder is done; a rejection of its is ours to write. */
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
    if (result.end === 'rejected' && rejection) {
      const { incoming, response } = this;
      const { rejections } = this.#context;
      const status = writeRejection(incoming, response, rejection, rejections, this.#ownFields());
      this.#record({ decision: 'refused', status, rejection, upstreamMs, fault });
    } else {
      const decision = result.end === 'sent' ? 'forwarded' : 'aborted';
      this.#record({ decision, status: result.status, upstreamMs, fault });
    }
  }

  /** A bug or an impossible state: the client gets 500, or its connection ends. */
  fail(fault: unknown): void {
    this.#context.onFault(fault, this.request?.requestId ?? this.unread.requestId);
    this.refuse({ rejection: 'internal-error', reason: codeOf(fault) ?? 'fault' });
  }

  /** Changes to the fields of every forwarded response. */
  editResponse(fields: FieldList): FieldList {
    return this.request === undefined ? fields : this.#context.ownFields.editForwarded(fields, this.request);
  }

  #ownFields(): FieldList {
    const { ownFields } = this.#context;
    return this.request === undefined
      ? ownFields.ofUnread(this.incoming.headers.origin, this.unread.requestId)
      : ownFields.of(this.request);
  }

  #record(outcome: Outcome): void {
    if (this.#isRecorded) return;
    this.#isRecorded = true;
    this.#context.record(toExchangeRecord(this, outcome, this.#context.redactPath), this.request);
  }
}
