import { isRejection, type Rejection } from '../rejections/rejection.ts';
import { requestTarget } from '../request/canonical-request.ts';
import { editFields, type FieldEdits, type FieldList } from '../request/field-list.ts';
import { answerFields, isCollectable, type ResponseHead } from './answer-fields.ts';
import { ClientResponse, type ClientResponseEvents } from './client-response.ts';
import { type DeadlineEvents, Deadlines } from './deadlines.ts';
import type { UpstreamExchange, UpstreamFault, UpstreamHandler, UpstreamRequest } from './engine.ts';
import { type ForwardFault, rejectionOfFault } from './fault-rejection.ts';
import { type ForwarderOptions, type ForwardInput, type ForwardResult, sendContinue } from './forwarder.ts';
import type { ForwardOutcome, ResponseEdits } from './passage.ts';
import { watchBody } from './request-body.ts';
import { endToEndFields } from './response-fields.ts';
import type { Slots, SlotWaiter } from './slots.ts';

/** One request on its way to the upstream and back: queue, dispatch, deadlines, the one retry, outcome, response. */
export class ForwardedExchange implements UpstreamHandler, SlotWaiter, ClientResponseEvents, DeadlineEvents {
  readonly #options: ForwarderOptions;
  readonly #slots: Slots;
  readonly #input: ForwardInput;
  readonly #resolve: (result: ForwardResult) => void;
  readonly #now: () => number;
  readonly #client: ClientResponse;
  readonly #deadlines: Deadlines;
  readonly #startedMs: number;
  #dispatchedMs: number | undefined;
  #upstreamMs = 0;
  #upstreamRequest: UpstreamRequest | undefined;
  #exchange: UpstreamExchange | undefined;
  #head: ResponseHead | undefined;
  /** Body held back for the passage; undefined while the response streams. */
  #collected: Buffer[] | undefined;
  #collectedBytes = 0;
  #stopWatching: (() => void) | undefined;
  /** Why we ended the exchange ourselves. */
  #ended: 'timeout' | 'late' | 'client' | Rejection | undefined;
  #isPaused = false;
  #wasSent = false;
  #retried = false;
  #isOver = false;

  constructor(
    options: ForwarderOptions,
    slots: Slots,
    input: ForwardInput,
    resolve: (result: ForwardResult) => void,
  ) {
    this.#options = options;
    this.#slots = slots;
    this.#input = input;
    this.#resolve = resolve;
    this.#now = options.now ?? monotonicMs;
    this.#startedMs = this.#now();
    this.#deadlines = new Deadlines(this, input.passage?.answerWithinMs, options.responseTimeoutMs);
    this.#client = new ClientResponse(input.incoming, input.response, options.writeStallTimeoutMs, this);
  }

  start(body: UpstreamRequest['body'] | Rejection): void {
    if (isRejection(body)) {
      this.#ended = body;
      void this.#conclude('request-body', false);
      return;
    }
    const { passage } = this.#input;
    if (this.#client.isGone && passage?.outlivesClient !== true) {
      this.#ended = 'client';
      void this.#conclude('aborted', false);
      return;
    }
    this.#upstreamRequest = this.#buildRequest(body);
    this.#deadlines.begin();
    this.#slots.acquire(this);
  }

  onSlot(): void {
    this.#dispatchedMs = this.#now();
    this.#deadlines.dispatched();
    this.#dispatch(false);
  }

  onNoSlot(): void {
    void this.#conclude('overloaded', false);
  }

  onSent(): void {
    this.#deadlines.sent();
  }

  onInformational(status: number, fields: FieldList): void {
    this.#deadlines.progress();
    this.#client.inform(status, fields);
  }

  onHead(status: number, reason: string, fields: FieldList): void {
    this.#deadlines.progress();
    const head = { status, reason, fields: endToEndFields(fields, status) };
    this.#head = head;
    const { passage, request } = this.#input;
    if (passage !== undefined && isCollectable(request.method, head, passage.collectBytes)) {
      this.#collected = [];
      this.#deadlines.collecting();
    } else {
      this.#begin(head);
    }
  }

  onData(chunk: Buffer): boolean {
    this.#deadlines.progress();
    if (this.#collected === undefined) return this.#write(chunk);
    this.#collected.push(chunk);
    this.#collectedBytes += chunk.length;
    return this.#collectedBytes <= (this.#input.passage?.collectBytes ?? 0) || this.#passThrough();
  }

  onEnd(): void {
    if (this.#isOver) return;
    this.#leaveUpstream();
    void this.#answer();
  }

  onFault(fault: UpstreamFault): void {
    if (this.#isOver) return;
    this.#wasSent ||= fault.sent;
    if (this.#mayRetry(fault)) {
      this.#retried = true;
      this.#deadlines.progress();
      this.#dispatch(true);
      return;
    }
    const kind = this.#ended === 'timeout' || this.#ended === 'late' ? this.#ended : fault.kind;
    void this.#conclude(kind, fault.answerBegun, fault.cause);
  }

  onTimeout(): void {
    // While the client does not read, silence of the upstream is our doing; the client has a deadline of its own.
    if (this.#isPaused && this.#input.passage?.answerWithinMs === undefined) this.#deadlines.progress();
    else this.#end('timeout');
  }

  onLate(): void {
    this.#end('late');
  }

  onCollectedTooLong(): void {
    this.#passThrough();
  }

  onDrain(): void {
    this.#isPaused = false;
    this.#deadlines.progress();
    this.#exchange?.resume();
  }

  onGone(): void {
    if (this.#isOver) return;
    if (this.#isPaused) this.onDrain();
    if (this.#input.passage?.outlivesClient === true) return;
    this.#end('client');
  }

  #buildRequest(body: UpstreamRequest['body']): UpstreamRequest {
    const { request, passage } = this.#input;
    const { via } = this.#options;
    let fields: FieldList = request.fields;
    if (passage?.requestFields !== undefined) fields = editFields(fields, passage.requestFields);
    if (via !== undefined) fields = [...fields, 'Via', `1.1 ${via}`];
    return {
      method: request.method,
      target: requestTarget(request),
      fields,
      body,
      maySend: passage === undefined ? undefined : () => this.#maySend(),
    };
  }

  #maySend(): boolean {
    const { maySend, sendWithinMs } = this.#input.passage ?? {};
    if (maySend?.() === false) return false;
    if (sendWithinMs !== undefined) this.#deadlines.sending(sendWithinMs);
    return true;
  }

  #dispatch(freshConnection: boolean): void {
    const request = this.#upstreamRequest;
    if (request === undefined) return;
    if (request.body !== null && !Buffer.isBuffer(request.body)) this.#watchBody();
    const exchange = this.#options.engine.dispatch(
      freshConnection ? { ...request, freshConnection } : request,
      this,
    );
    // A fault in this very call may have begun the retry already: its exchange is the one that counts.
    if (!freshConnection && this.#retried) return;
    this.#exchange = exchange;
    if (this.#ended !== undefined) exchange.abort();
  }

  #watchBody(): void {
    const { bodyLimitBytes, bodyTimeoutMs } = this.#options;
    sendContinue(this.#input);
    this.#stopWatching = watchBody(
      this.#input.incoming,
      { limitBytes: bodyLimitBytes, timeoutMs: bodyTimeoutMs },
      (rejection) => this.#end(rejection),
      () => this.#deadlines.progress(),
    );
  }

  /** RFC 9110 section 9.2.2: only what is safe and has no body, once, and only where staleness explains the reset. */
  #mayRetry(fault: UpstreamFault): boolean {
    const { request } = this.#input;
    return (
      !this.#retried &&
      this.#ended === undefined &&
      fault.kind === 'reset' &&
      fault.reusedConnection &&
      !fault.answerBegun &&
      (request.method === 'GET' || request.method === 'HEAD') &&
      this.#upstreamRequest?.body === null
    );
  }

  /** We end the exchange; `onFault` hears of it, or there is no exchange yet. */
  #end(why: 'timeout' | 'late' | 'client' | Rejection): void {
    if (this.#isOver || this.#ended !== undefined) return;
    this.#ended = why;
    if (this.#exchange !== undefined) this.#exchange.abort();
    else if (this.#slots.leave(this)) void this.#conclude(why === 'timeout' ? 'timeout' : 'aborted', false);
  }

  #begin(head: ResponseHead): void {
    const edits = this.#input.passage?.streamedFields;
    this.#client.begin(head.status, head.reason, this.#finalFields(head, edits));
  }

  #finalFields(head: ResponseHead, edits: FieldEdits | undefined): FieldList {
    const fields = edits === undefined ? head.fields : editFields(head.fields, edits);
    return this.#input.editResponse?.(fields, head.status) ?? fields;
  }

  #write(chunk: Buffer): boolean {
    if (this.#client.write(chunk)) return true;
    this.#isPaused = true;
    return false;
  }

  /** The body is too long, or too slow, to be held back. */
  #passThrough(): boolean {
    const chunks = this.#collected;
    this.#deadlines.collected();
    this.#collected = undefined;
    if (chunks === undefined || this.#head === undefined) return true;
    this.#begin(this.#head);
    return chunks.length === 0 || this.#write(Buffer.concat(chunks));
  }

  #leaveUpstream(): void {
    this.#isOver = true;
    this.#deadlines.stop();
    this.#stopWatching?.();
    if (this.#dispatchedMs === undefined) return;
    this.#upstreamMs = this.#now() - this.#dispatchedMs;
    this.#slots.release();
  }

  /** The upstream's response is complete. */
  async #answer(): Promise<void> {
    const head = this.#head;
    if (head === undefined) return;
    const body = this.#collected === undefined ? null : Buffer.concat(this.#collected);
    const { status, reason, fields } = head;
    let edits: ResponseEdits = {};
    if (this.#input.passage !== undefined) {
      const settled = await this.#settle({ kind: 'answered', status, fields, body });
      if ('failure' in settled) {
        this.#refuse(rejectionOfFault('not-sent', true, settled.failure), undefined, settled.failure);
        return;
      }
      edits = settled;
    }
    if (body === null) {
      this.#client.end();
    } else {
      const answer = answerFields(this.#input.request.method, head, body, edits);
      const final = this.#finalFields({ ...answer, reason }, undefined);
      this.#client.send(answer.status, answer.reason, final, answer.body);
    }
    this.#report(this.#client.isGone ? 'client-gone' : 'sent');
  }

  /** There will be no (whole) response. */
  async #conclude(fault: ForwardFault, answerBegun: boolean, cause?: unknown): Promise<void> {
    this.#leaveUpstream();
    let why = cause;
    if (this.#input.passage !== undefined) {
      const settled = await this.#settle(outcomeOf(fault, this.#wasSent));
      if ('failure' in settled) why ??= settled.failure;
    }
    if (isRejection(this.#ended)) this.#refuse(this.#ended, undefined, why);
    else this.#refuse(rejectionOfFault(fault, answerBegun, cause), fault, why);
  }

  async #settle(outcome: ForwardOutcome): Promise<ResponseEdits | { readonly failure: unknown }> {
    try {
      return (await this.#input.passage?.settle(outcome)) ?? {};
    } catch (failure) {
      return { failure };
    }
  }

  #refuse(rejection: Rejection, fault: ForwardFault | undefined, cause: unknown): void {
    if (this.#client.isGone) {
      this.#report('client-gone', undefined, fault, cause);
    } else if (this.#client.isBegun) {
      this.#client.cut();
      this.#report('cut', undefined, fault, cause);
    } else {
      this.#client.withdraw();
      this.#report('rejected', rejection, fault, cause);
    }
  }

  #report(end: ForwardResult['end'], rejection?: Rejection, fault?: ForwardFault, cause?: unknown): void {
    this.#resolve({
      end,
      rejection,
      status: this.#client.status,
      upstreamStatus: this.#head?.status ?? 0,
      fault,
      cause,
      queuedMs: (this.#dispatchedMs ?? this.#now()) - this.#startedMs,
      upstreamMs: this.#upstreamMs,
      bytes: this.#client.bytes,
      retried: this.#retried,
    });
  }
}

function outcomeOf(fault: ForwardFault, wasSent: boolean): ForwardOutcome {
  if (wasSent && fault !== 'overloaded') return { kind: 'unknown', fault };
  return { kind: 'unsent', fault: fault === 'timeout' || fault === 'late' ? 'aborted' : fault };
}

function monotonicMs(): number {
  return performance.now();
}
