import type { FieldList } from '../http/field-list.ts';
import { isRejection, type Rejection } from '../http/rejection.ts';
import { endAlone, isolate, isolateLate } from '../lib/faults.ts';
import { ClientResponse, type ClientResponseEvents } from './client-response.ts';
import { type DeadlineEvents, Deadlines } from './deadlines.ts';
import type {
  UpstreamClient,
  UpstreamExchange,
  UpstreamFault,
  UpstreamHandler,
  UpstreamRequest,
} from './port.ts';
import {
  done,
  type ExchangeState,
  entered,
  expected,
  nothingKnown,
  queued,
  resultOf,
  type Settling,
  settlingOf,
} from './exchange-state.ts';
import {
  type ForwardCaller,
  type ForwardFault,
  type ForwardInput,
  type ForwardResult,
  outcomeOfFault,
  rejectionOfFault,
  upstreamRequestOf,
} from './forward.ts';
import { askForEdits, type HookFailure, type ResponseEdits, type UpstreamHooks } from './hooks.ts';
import type { PublicReferences } from './public-references.ts';
import { type BodyLimits, limitsOfRoute, sendContinue, watchBody } from './request-body.ts';
import { endToEndFields } from './response-fields.ts';
import { ResponseRelay } from './response-relay.ts';

export interface ExchangeOptions extends BodyLimits {
  readonly client: UpstreamClient;
  /** Milliseconds without progress: from the last byte of the request to the head, and between bytes of a body. */
  readonly responseTimeoutMs: number;
  /** Milliseconds in which a client must take what was written to it; its connection is destroyed otherwise. */
  readonly writeStallTimeoutMs: number;
  /** Default: `Location` and `Content-Location` stay as they are. */
  readonly references?: PublicReferences | undefined;
}

/** Why shopward ends an exchange; undefined: nobody waits for it any more. */
type EndReason = 'timeout' | 'late' | 'internal' | Rejection | undefined;

/** What a fault tells of the exchange. */
type Seen = Pick<UpstreamFault, 'sent' | 'answerBegun' | 'cause'>;

/** A fault before anything was sent to the upstream. */
const unsent: Seen = { sent: false, answerBegun: false };

/** One request on its way to the upstream, and its response: body, deadlines, outcome. */
export class ForwardedExchange implements UpstreamHandler, ClientResponseEvents, DeadlineEvents {
  readonly #options: ExchangeOptions;
  readonly #input: ForwardInput;
  readonly #body: UpstreamRequest['body'];
  readonly #caller: ForwardCaller;
  readonly #client: ClientResponse;
  readonly #deadlines: Deadlines;
  readonly #startedMs = performance.now();
  #upstream: UpstreamExchange | undefined;
  #state: ExchangeState = queued;

  constructor(
    options: ExchangeOptions,
    input: ForwardInput,
    body: UpstreamRequest['body'],
    caller: ForwardCaller,
  ) {
    this.#options = options;
    this.#input = input;
    this.#body = body;
    this.#caller = caller;
    const responseTimeoutMs = input.limits?.responseTimeoutMs ?? options.responseTimeoutMs;
    // A feature relies on its deadline; the limits of a route may only make it earlier.
    const answerWithinMs =
      input.hooks?.answerWithinMs && Math.min(input.hooks.answerWithinMs, responseTimeoutMs);
    this.#deadlines = new Deadlines(this, answerWithinMs, responseTimeoutMs);
    this.#client = new ClientResponse(input.incoming, input.response, options.writeStallTimeoutMs, this);
  }

  start(): void {
    if (this.#client.isGone && !this.#outlivesClient) {
      this.#conclude('aborted', unsent);
      return;
    }
    this.#deadlines.begin();
    const { hooks } = this.#input;
    const maySend = hooks === undefined ? undefined : () => this.#maySend(hooks);
    this.#upstream = this.#options.client.dispatch(upstreamRequestOf(this.#input, this.#body, maySend), this);
  }

  /** Instead of `start`: the request's body could not be read. */
  refuse(rejection: Rejection): void {
    this.#conclude('request-body', unsent, rejection);
  }

  onConnection(): void {
    expected(this.#state, 'queued');
    const isStreamed = this.#body !== null && !Buffer.isBuffer(this.#body);
    const stopWatching = isStreamed ? this.#watchBody() : undefined;
    this.#state = entered(this.#state, {
      name: 'sent',
      sinceMs: performance.now(),
      stopWatching,
      isRetried: false,
    });
    this.#deadlines.dispatched();
  }

  onRetry(): void {
    expected(this.#state, 'sent').isRetried = true;
    this.#deadlines.progress();
  }

  onSent(): void {
    expected(this.#state, 'sent', 'streaming');
    this.#deadlines.sent();
  }

  onInformational(status: number, fields: FieldList): void {
    expected(this.#state, 'sent');
    this.#deadlines.progress();
    this.#client.inform(status, fields);
  }

  onHead(status: number, reason: string, fields: FieldList): void {
    const { sinceMs, stopWatching, isRetried } = expected(this.#state, 'sent');
    const kept = endToEndFields(fields, status, this.#options.references, this.#input.request);
    const relay = new ResponseRelay(this.#input, this.#client, this.#caller, status, reason, kept);
    this.#state = entered(this.#state, { name: 'streaming', sinceMs, stopWatching, isRetried, relay });
    this.#deadlines.progress();
    if (relay.begin()) this.#deadlines.collecting();
  }

  onData(chunk: Buffer, release?: () => void): boolean {
    const { relay } = expected(this.#state, 'streaming');
    this.#deadlines.progress();
    return relay.write(chunk, release);
  }

  onEnd(): void {
    const { relay } = expected(this.#state, 'streaming');
    const settling = this.#settle();
    if (this.#input.hooks === undefined) this.#finish(settling, relay, {});
    else this.#answer(settling, relay);
  }

  onFault({ kind, sent, answerBegun, cause }: UpstreamFault): void {
    if (this.#isUnderWay) {
      const why = kind === 'aborted' ? (cause as EndReason) : undefined;
      if (kind !== 'aborted') this.#conclude(kind, { sent, answerBegun, cause });
      else if (isRejection(why)) this.#conclude(kind, { sent, answerBegun }, why);
      else this.#conclude(why ?? kind, { sent, answerBegun });
    } else if (kind === 'internal') this.#refuseFault(cause);
  }

  onTimeout(): void {
    // While the client does not read, the upstream's silence is not its fault; the client has its own deadline.
    if (this.#client.isBlocked && this.#input.hooks?.answerWithinMs === undefined) this.#deadlines.progress();
    else this.#abort('timeout');
  }

  onLate(): void {
    this.#abort('late');
  }

  onCollectedTooLong(): void {
    expected(this.#state, 'streaming').relay.passThrough();
  }

  onBroken(): void {
    this.#abort('internal');
  }

  onDrain(): void {
    if (this.#state.name !== 'streaming') return;
    this.#deadlines.progress();
    this.#upstream?.resume();
  }

  onGone(): void {
    if (!this.#isUnderWay) return;
    // It may have been held up by the client.
    if (this.#outlivesClient) this.onDrain();
    else this.#abort(undefined);
  }

  get #isUnderWay(): boolean {
    return this.#state.name !== 'settling' && this.#state.name !== 'done';
  }

  get #outlivesClient(): boolean {
    return this.#input.hooks?.ignoreClientAbort === true;
  }

  /** The client reports a fault with this cause within this call. */
  #abort(why: EndReason): void {
    this.#upstream?.abort(why);
  }

  #maySend({ maySend, sendWithinMs }: UpstreamHooks): boolean {
    if (maySend?.() === false) return false;
    if (sendWithinMs !== undefined) this.#deadlines.sending(sendWithinMs);
    return true;
  }

  #watchBody(): () => void {
    sendContinue(this.#input.request, this.#input.response);
    return watchBody(
      this.#input.incoming,
      limitsOfRoute(this.#options, this.#input.limits),
      (rejection) => this.#abort(rejection),
      () => this.#deadlines.progress(),
    );
  }

  /** Stops all timers, and stops reading the request's body. */
  #settle(): Settling {
    const state = this.#state;
    const settling = settlingOf(state, this.#startedMs, performance.now());
    this.#state = entered(state, settling);
    this.#deadlines.stop();
    if ('stopWatching' in state) state.stopWatching?.();
    return settling;
  }

  /** The upstream's response is complete: `onOutcome` is asked. */
  #answer(settling: Settling, relay: ResponseRelay): void {
    const finish = (edits: ResponseEdits | HookFailure) => {
      if (this.#state !== settling) return;
      if ('failure' in edits) throw edits.failure;
      this.#finish(settling, relay, edits);
    };
    const fail = (cause: unknown) => {
      if (this.#state === settling) isolate(() => this.#refuseFault(cause), this.#giveUp);
      else endAlone(cause, this.#giveUp);
    };
    try {
      const edits = askForEdits(this.#input.hooks, relay.outcome());
      // Edits that are known at once cost no promise.
      if (edits instanceof Promise) isolateLate(edits.then(finish).catch(fail), this.#giveUp);
      else finish(edits);
    } catch (cause) {
      fail(cause);
    }
  }

  #finish(settling: Settling, relay: ResponseRelay, edits: ResponseEdits): void {
    if (edits.rejection !== undefined && relay.mayBeReplaced) {
      this.#refuse(settling, edits.rejection, undefined, undefined);
      return;
    }
    relay.end(edits);
    this.#report(settling, this.#client.isGone ? 'client-gone' : 'sent');
  }

  /** There will be no (whole) response. */
  #conclude(fault: ForwardFault, seen: Seen, rejection?: Rejection): void {
    this.#endWithout(fault, seen, rejection).catch((thrown) => endAlone(thrown, this.#giveUp));
  }

  async #endWithout(
    fault: ForwardFault,
    { sent, answerBegun, cause }: Seen,
    rejection: Rejection | undefined,
  ): Promise<void> {
    const settling = this.#settle();
    let why = cause;
    if (this.#input.hooks !== undefined) {
      const edits = await askForEdits(this.#input.hooks, outcomeOfFault(fault, sent));
      if (this.#state !== settling) return;
      if ('failure' in edits) why ??= edits.failure;
    }
    if (rejection !== undefined) this.#refuse(settling, rejection, undefined, why);
    else this.#refuse(settling, rejectionOfFault(fault, answerBegun, cause), fault, why);
  }

  /** Even the end of the exchange threw: the client's connection ends, and the caller learns it once. */
  readonly #giveUp = (): void => {
    const isConcluded = this.#state.name === 'done';
    this.#state = done;
    this.#deadlines.stop();
    this.#client.abandon();
    if (!isConcluded) this.#caller.conclude(nothingKnown);
  };

  /** One of our functions threw after the upstream had answered. */
  #refuseFault(cause: unknown): void {
    const state = this.#state;
    if (state.name === 'settling') this.#refuse(state, rejectionOfFault('internal', true), undefined, cause);
  }

  #refuse(settling: Settling, rejection: Rejection, fault: ForwardFault | undefined, cause: unknown): void {
    if (this.#client.isGone) {
      this.#report(settling, 'client-gone', undefined, fault, cause);
    } else if (this.#client.isBegun) {
      this.#client.cut();
      this.#report(settling, 'cut', undefined, fault, cause);
    } else {
      this.#client.withdraw();
      this.#report(settling, 'rejected', rejection, fault, cause);
    }
  }

  #report(
    settling: Settling,
    end: ForwardResult['end'],
    rejection?: Rejection,
    fault?: ForwardFault,
    cause?: unknown,
  ): void {
    this.#state = entered(this.#state, done);
    this.#caller.conclude(resultOf(settling, this.#client, end, rejection, fault, cause));
  }
}
