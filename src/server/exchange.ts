import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ForwardResult } from '../forwarding/forwarder.ts';
import type { Rejection } from '../rejections/rejection.ts';
import { writeRejection } from '../rejections/rejection-writer.ts';
import type { Rejections } from '../rejections/table.ts';
import { endResponse } from '../rejections/unread-body.ts';
import type { Answer } from '../request/answer.ts';
import type { CanonicalRequest } from '../request/canonical-request.ts';
import type { FieldList } from '../request/field-list.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import type { PathForLog } from '../telemetry/path-for-log.ts';
import type { OwnFields } from './own-fields.ts';

export interface ExchangeContext {
  readonly rejections: Rejections;
  readonly ownFields: OwnFields;
  readonly pathForLog: PathForLog;
  /** `request`: what it was about, where it was understood. */
  record(record: ExchangeRecord, request?: CanonicalRequest): void;
  /** Something broke in a way that a person should look at. */
  onFault(fault: unknown, requestId: string): void;
}

/** One request and its one response, and what is noted of them. The only place that ends an exchange. */
export class Exchange {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  /** Template of the own endpoint or row that decided; `*` until one did. */
  route = '*';
  readonly #context: ExchangeContext;
  readonly #startedMs = performance.now();
  #request: CanonicalRequest | undefined;
  #observed: Rejection | undefined;
  #isRecorded = false;

  constructor(incoming: IncomingMessage, response: ServerResponse, context: ExchangeContext) {
    this.incoming = incoming;
    this.response = response;
    this.#context = context;
  }

  /** The request was understood. */
  meet(request: CanonicalRequest): void {
    this.#request = request;
  }

  /** A refusal that observe mode only notes; the first one counts. */
  observe(rejection: Rejection): void {
    this.#observed ??= rejection;
  }

  refuse(rejection: Rejection): void {
    const { incoming, response } = this;
    const status = writeRejection(incoming, response, rejection, this.#context.rejections, this.#ownFields());
    this.#record(status === 0 ? 'aborted' : 'refused', status, { rejection });
  }

  answer({ status, fields, body }: Answer): void {
    const { incoming, response } = this;
    if (response.destroyed) {
      this.#record('aborted', 0);
      return;
    }
    response.writeHead(status, [...fields, ...this.#ownFields()]);
    endResponse(incoming, response, body ?? undefined);
    this.#record('answered', status);
  }

  /** The forwarder is done; a rejection of its is ours to write. */
  conclude(result: ForwardResult): void {
    const fault = codeOf(result.cause) ?? result.fault;
    if (result.end === 'rejected' && result.rejection) {
      const { incoming, response } = this;
      const status = writeRejection(
        incoming,
        response,
        result.rejection,
        this.#context.rejections,
        this.#ownFields(),
      );
      this.#record('refused', status, { rejection: result.rejection, upstreamMs: result.upstreamMs, fault });
    } else {
      const decision = result.end === 'sent' ? 'forwarded' : 'aborted';
      this.#record(decision, result.status, { upstreamMs: result.upstreamMs, fault });
    }
  }

  /** A bug or an impossible state: the client gets 500, or its connection ends. */
  fail(fault: unknown): void {
    this.#context.onFault(fault, this.#request?.requestId ?? '');
    this.refuse({ rejection: 'internal-error', reason: codeOf(fault) ?? 'fault' });
  }

  /** Changes to the fields of every forwarded response. */
  readonly editResponse = (fields: FieldList): FieldList => {
    return this.#request === undefined
      ? fields
      : this.#context.ownFields.editForwarded(fields, this.#request);
  };

  #ownFields(): FieldList {
    return this.#request === undefined ? [] : this.#context.ownFields.of(this.#request);
  }

  #record(
    decision: ExchangeRecord['decision'],
    status: number,
    more: { rejection?: Rejection; upstreamMs?: number; fault?: string | undefined } = {},
  ): void {
    if (this.#isRecorded) return;
    this.#isRecorded = true;
    const request = this.#request;
    const record: ExchangeRecord = {
      requestId: request?.requestId ?? '',
      method: request?.method ?? 'other',
      route: this.route,
      path: request === undefined ? '' : this.#context.pathForLog(request.segments),
      decision,
      status,
      rejection: more.rejection?.rejection,
      reason: (more.rejection ?? this.#observed)?.reason,
      observed: this.#observed?.rejection,
      durationMs: performance.now() - this.#startedMs,
      upstreamMs: more.upstreamMs,
      clientAddress: request?.clientAddress ?? this.incoming.socket.remoteAddress ?? '',
      fault: more.fault,
    };
    this.#context.record(record, request);
  }
}

function codeOf(fault: unknown): string | undefined {
  const code = (fault as NodeJS.ErrnoException | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}
