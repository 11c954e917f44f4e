import { requestTarget } from '../http/canonical-request.ts';
import { editFields, type FieldList } from '../http/field-list.ts';
import { isRejection, type Rejection } from '../http/rejection.ts';
import { ClientResponse, type ClientResponseEvents } from './client-response.ts';
import { type DeadlineEvents, Deadlines } from './deadlines.ts';
import type {
  UpstreamEngine,
  UpstreamExchange,
  UpstreamFault,
  UpstreamHandler,
  UpstreamRequest,
} from './engine.ts';
import {
  type ForwardCaller,
  type ForwardFault,
  type ForwardInput,
  type ForwardResult,
  outcomeOfFault,
  rejectionOfFault,
} from './forward.ts';
import type { ForwardOutcome, ResponseEdits } from './hooks.ts';
import { type BodyOptions, bodyLimits, sendContinue, watchBody } from './request-body.ts';
import { ResponseRelay } from './response-relay.ts';

export interface ExchangeOptions extends BodyOptions {
  readonly engine: UpstreamEngine;
  /** Milliseconds without progress: from the last byte of the request to the head, and between bytes of a body. */
  readonly responseTimeoutMs: number;
  /** Milliseconds in which a client must take what was written to it; its connection is destroyed otherwise. */
  readonly writeStallTimeoutMs: number;
  /** Monotonic milliseconds. Default `performance.now`. */
  readonly now?: () => number;
}

/**
 * Where an exchange is. `queued`: it waits for a connection; `sent`: it has one, and no final head came back;
 * `streaming`: the response is coming; `settling`: the upstream's part is over, `onOutcome` has its say; `done`.
 */
type State = 'queued' | 'sent' | 'streaming' | 'settling' | 'done';

/** One request on its way to the upstream and back: body, deadlines, outcome, response. */
export class ForwardedExchange implements UpstreamHandler, ClientResponseEvents, DeadlineEvents {
  readonly #options: ExchangeOptions;
  readonly #input: ForwardInput;
  readonly #caller: ForwardCaller;
  readonly #now: () => number;
  readonly #client: ClientResponse;
  readonly #relay: ResponseRelay;
  readonly #deadlines: Deadlines;
  readonly #startedMs: number;
  #state: State = 'queued';
  #dispatchedMs: number | undefined;
  #upstreamMs = 0;
  #exchange: UpstreamExchange | undefined;
  #stopWatching: (() => void) | undefined;
  /** Why we ended the exchange ourselves. */
  #ended: 'timeout' | 'late' | 'client' | Rejection | undefined;
  #isBodyStreamed = false;
  #isPaused = false;
  #retried = false;

  constructor(options: ExchangeOptions, input: ForwardInput, caller: ForwardCaller) {
    this.#options = options;
    this.#input = input;
    this.#caller = caller;
    this.#now = options.now ?? monotonicMs;
    this.#startedMs = this.#now();
    this.#deadlines = new Deadlines(this, input.hooks?.answerWithinMs, options.responseTimeoutMs);
    this.#client = new ClientResponse(input.incoming, input.response, options.writeStallTimeoutMs, this);
    this.#relay = new ResponseRelay(input, this.#client, caller);
  }

  start(body: UpstreamRequest['body'] | Rejection): void {
    if (isRejection(body)) {
      this.#ended = body;
      void this.#conclude('request-body', false, false);
      return;
    }
    if (this.#client.isGone && this.#input.hooks?.ignoreClientAbort !== true) {
      this.#ended = 'client';
      void this.#conclude('aborted', false, false);
      return;
    }
    this.#isBodyStreamed = body !== null && !Buffer.isBuffer(body);
    this.#deadlines.begin();
    const exchange = this.#options.engine.dispatch(this.#buildRequest(body), this);
    this.#exchange = exchange;
    if (this.#ended !== undefined) exchange.abort();
  }

  onConnection(): void {
    this.#state = 'sent';
    this.#dispatchedMs = this.#now();
    this.#deadlines.dispatched();
    if (this.#isBodyStreamed) this.#watchBody();
  }

  onRetry(): void {
    this.#retried = true;
    this.#deadlines.progress();
  }

  onSent(): void {
    this.#deadlines.sent();
  }

  onInformational(status: number, fields: FieldList): void {
    this.#deadlines.progress();
    this.#client.inform(status, fields);
  }

  onHead(status: number, reason: string, fields: FieldList): void {
    this.#state = 'streaming';
    this.#deadlines.progress();
    if (this.#relay.begin(status, reason, fields)) this.#deadlines.collecting();
  }

  onData(chunk: Buffer): boolean {
    this.#deadlines.progress();
    return this.#pauseUnless(this.#relay.write(chunk));
  }

  onEnd(): void {
    if (this.#isSettled) return;
    this.#leaveUpstream();
    const outcome = this.#relay.outcome();
    if (this.#input.hooks === undefined || outcome === undefined) this.#finish({}, outcome);
    else void this.#answer(outcome);
  }

  onFault(fault: UpstreamFault): void {
    if (fault.kind === 'internal' && this.#state === 'settling') this.#refuseFault(fault.cause);
    if (this.#isSettled) return;
    const kind = this.#ended === 'timeout' || this.#ended === 'late' ? this.#ended : fault.kind;
    void this.#conclude(kind, fault.sent, fault.answerBegun, fault.cause);
  }

  onTimeout(): void {
    // While the client does not read, silence of the upstream is our doing; the client has a deadline of its own.
    if (this.#isPaused && this.#input.hooks?.answerWithinMs === undefined) this.#deadlines.progress();
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
    if (this.#isSettled) return;
    if (this.#isPaused) this.onDrain();
    if (this.#input.hooks?.ignoreClientAbort === true) return;
    this.#end('client');
  }

  get #isSettled(): boolean {
    return this.#state === 'settling' || this.#state === 'done';
  }

  #buildRequest(body: UpstreamRequest['body']): UpstreamRequest {
    const { request, hooks } = this.#input;
    let fields: FieldList = request.fields;
    if (hooks?.requestFields !== undefined) fields = editFields(fields, hooks.requestFields);
    return {
      method: request.method,
      target: requestTarget(request),
      fields,
      body,
      beforeSend: hooks?.beforeSend,
      maySend: hooks === undefined ? undefined : () => this.#maySend(),
    };
  }

  #maySend(): boolean {
    const { maySend, sendWithinMs } = this.#input.hooks ?? {};
    if (maySend?.() === false) return false;
    if (sendWithinMs !== undefined) this.#deadlines.sending(sendWithinMs);
    return true;
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

  /** We end the exchange; `onFault` hears of it. */
  #end(why: 'timeout' | 'late' | 'client' | Rejection): void {
    if (this.#isSettled || this.#ended !== undefined) return;
    this.#ended = why;
    this.#exchange?.abort();
  }

  #pauseUnless(mayGoOn: boolean): boolean {
    if (!mayGoOn) this.#isPaused = true;
    return mayGoOn;
  }

  #leaveUpstream(): void {
    this.#state = 'settling';
    this.#deadlines.stop();
    this.#stopWatching?.();
    if (this.#dispatchedMs !== undefined) this.#upstreamMs = this.#now() - this.#dispatchedMs;
  }

  /** The upstream's response is complete, and `onOutcome` has its say. */
  async #answer(outcome: ForwardOutcome): Promise<void> {
    const settled = await this.#settle(outcome);
    try {
      if ('failure' in settled) throw settled.failure;
      this.#finish(settled, outcome);
    } catch (cause) {
      this.#refuseFault(cause);
    }
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
  async #conclude(fault: ForwardFault, sent: boolean, answerBegun: boolean, cause?: unknown): Promise<void> {
    this.#leaveUpstream();
    let why = cause;
    if (this.#input.hooks !== undefined) {
      const settled = await this.#settle(outcomeOfFault(fault, sent));
      if ('failure' in settled) why ??= settled.failure;
    }
    if (isRejection(this.#ended)) this.#refuse(this.#ended, undefined, why);
    else this.#refuse(rejectionOfFault(fault, answerBegun, cause), fault, why);
  }

  async #settle(outcome: ForwardOutcome): Promise<ResponseEdits | { readonly failure: unknown }> {
    try {
      return (await this.#input.hooks?.onOutcome(outcome)) ?? {};
    } catch (failure) {
      return { failure };
    }
  }

  /** Something of ours threw once the upstream had answered. */
  #refuseFault(cause: unknown): void {
    this.#refuse(rejectionOfFault('internal', true), undefined, cause);
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
    if (this.#state === 'done') return;
    this.#state = 'done';
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
