import { isRejection, type Rejection } from '../rejections/rejection.ts';
import { requestTarget } from '../request/canonical-request.ts';
import { editFields, type FieldList } from '../request/field-list.ts';
import { ClientResponse, type ClientResponseEvents } from './client-response.ts';
import { type DeadlineEvents, Deadlines } from './deadlines.ts';
import type { UpstreamExchange, UpstreamFault, UpstreamHandler, UpstreamRequest } from './engine.ts';
import { type ForwardFault, outcomeOfFault, rejectionOfFault } from './fault-rejection.ts';
import type { ForwardCaller, ForwarderOptions, ForwardInput, ForwardResult } from './forwarder.ts';
import type { ForwardOutcome, ResponseEdits } from './passage.ts';
import { bodyLimits, sendContinue, watchBody } from './request-body.ts';
import { ResponseRelay } from './response-relay.ts';
import type { Slots, SlotWaiter } from './slots.ts';

/** One request on its way to the upstream and back: queue, dispatch, deadlines, the one retry, outcome, response. */
export class ForwardedExchange implements UpstreamHandler, SlotWaiter, ClientResponseEvents, DeadlineEvents {
  readonly #options: ForwarderOptions;
  readonly #slots: Slots;
  readonly #input: ForwardInput;
  readonly #caller: ForwardCaller;
  readonly #now: () => number;
  readonly #client: ClientResponse;
  readonly #relay: ResponseRelay;
  readonly #deadlines: Deadlines;
  readonly #startedMs: number;
  #dispatchedMs: number | undefined;
  #upstreamMs = 0;
  #upstreamRequest: UpstreamRequest | undefined;
  #exchange: UpstreamExchange | undefined;
  #stopWatching: (() => void) | undefined;
  /** Why we ended the exchange ourselves. */
  #ended: 'timeout' | 'late' | 'client' | Rejection | undefined;
  #isPaused = false;
  #wasSent = false;
  #retried = false;
  #isOver = false;

  constructor(options: ForwarderOptions, slots: Slots, input: ForwardInput, caller: ForwardCaller) {
    this.#options = options;
    this.#slots = slots;
    this.#input = input;
    this.#caller = caller;
    this.#now = options.now ?? monotonicMs;
    this.#startedMs = this.#now();
    this.#deadlines = new Deadlines(this, input.passage?.answerWithinMs, options.responseTimeoutMs);
    this.#client = new ClientResponse(input.incoming, input.response, options.writeStallTimeoutMs, this);
    this.#relay = new ResponseRelay(input, this.#client, caller);
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
    if (this.#relay.begin(status, reason, fields)) this.#deadlines.collecting();
  }

  onData(chunk: Buffer): boolean {
    this.#deadlines.progress();
    return this.#pauseUnless(this.#relay.write(chunk));
  }

  onEnd(): void {
    if (this.#isOver) return;
    this.#leaveUpstream();
    const outcome = this.#relay.outcome();
    if (this.#input.passage === undefined || outcome === undefined) this.#finish({}, outcome);
    else void this.#answer(outcome);
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
    this.#pauseUnless(this.#relay.passThrough());
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
    sendContinue(this.#input.request, this.#input.response);
    this.#stopWatching = watchBody(
      this.#input.incoming,
      bodyLimits(this.#options),
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

  #pauseUnless(mayGoOn: boolean): boolean {
    if (!mayGoOn) this.#isPaused = true;
    return mayGoOn;
  }

  #leaveUpstream(): void {
    this.#isOver = true;
    this.#deadlines.stop();
    this.#stopWatching?.();
    if (this.#dispatchedMs === undefined) return;
    this.#upstreamMs = this.#now() - this.#dispatchedMs;
    this.#slots.release();
  }

  /** The upstream's response is complete, and the passage has its say. */
  async #answer(outcome: ForwardOutcome): Promise<void> {
    const settled = await this.#settle(outcome);
    if ('failure' in settled) {
      this.#refuse(rejectionOfFault('not-sent', true, settled.failure), undefined, settled.failure);
    } else this.#finish(settled, outcome);
  }

  #finish(edits: ResponseEdits, outcome: ForwardOutcome | undefined): void {
    if (edits.rejection !== undefined && outcome?.kind === 'answered' && this.#relay.mayBeReplaced) {
      this.#refuse(edits.rejection, undefined, undefined);
      return;
    }
    this.#relay.end(edits);
    this.#report(this.#client.isGone ? 'client-gone' : 'sent');
  }

  /** There will be no (whole) response. */
  async #conclude(fault: ForwardFault, answerBegun: boolean, cause?: unknown): Promise<void> {
    this.#leaveUpstream();
    let why = cause;
    if (this.#input.passage !== undefined) {
      const settled = await this.#settle(outcomeOfFault(fault, this.#wasSent));
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
    this.#caller.conclude({
      end,
      rejection,
      status: this.#client.status,
      upstreamStatus: this.#relay.status,
      fault,
      cause,
      queuedMs: (this.#dispatchedMs ?? this.#now()) - this.#startedMs,
      upstreamMs: this.#upstreamMs,
      bytes: this.#client.bytes,
      retried: this.#retried,
    });
  }
}

function monotonicMs(): number {
  return performance.now();
}
