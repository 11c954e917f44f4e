import type { Socket } from 'node:net';
import { editFields, type FieldList } from '../http/field-list.ts';
import { isRejection, type Rejection } from '../http/rejection.ts';
import { endAlone, isolate, isolated, isolateLate } from '../lib/faults.ts';
import { type ClientPatience, ClientResponse, type ClientResponseEvents } from './client-response.ts';
import {
  type ForwardCaller,
  type ForwardFault,
  type ForwardInput,
  type ForwardResult,
  outcomeOfFault,
  rejectionOfFault,
} from './forward.ts';
import { askForEdits, type HookFailure, type ResponseEdits, type UpstreamHooks } from './hooks.ts';
import type {
  UpstreamClient,
  UpstreamExchange,
  UpstreamFault,
  UpstreamHandler,
  UpstreamRequest,
} from './port.ts';
import { type BodyLimits, sendContinue, watchBody } from './request-body.ts';
import { endToEndFields, type PublicReferences } from './response-fields.ts';
import { ResponseRelay } from './response-relay.ts';

export interface ExchangeOptions extends BodyLimits, ClientPatience {
  readonly client: UpstreamClient;
  /** Milliseconds without progress: from the last byte of the request to the head, and between bytes of a body. */
  readonly responseTimeoutMs: number;
  /** Compares the time here with that of the upstream, while `isDue`. */
  readonly clock?: { readonly isDue: boolean; hearShop(fields: FieldList, tookMs: number): void } | undefined;
  /** Default: `Location` and `Content-Location` stay as they are. */
  readonly references?: PublicReferences | undefined;
}

/** Why shopward ends an exchange; undefined: the client is gone. */
type EndReason = 'timeout' | 'late' | 'internal' | Rejection | undefined;

/** What a fault tells of the exchange. */
type Seen = Pick<UpstreamFault, 'sent' | 'answerBegun' | 'cause'>;

/** A fault before anything was sent to the upstream. */
const unsent: Seen = { sent: false, answerBegun: false };

/** Milliseconds for which a body is buffered for hooks without a deadline of their own. */
const collectTimeoutMs = 1_000;

/** docs/decisions/forwarded-exchange.md has the events of each state. */
type State = 'queued' | 'sent' | 'streaming' | 'settling' | 'done';

const successors: Readonly<Record<State, readonly State[]>> = {
  queued: ['sent', 'settling'],
  sent: ['streaming', 'settling'],
  streaming: ['settling'],
  settling: ['done'],
  done: [],
};

/** One request on its way to the upstream, and its response: body, deadlines, outcome. */
export class ForwardedExchange implements UpstreamHandler, ClientResponseEvents {
  readonly #options: ExchangeOptions;
  readonly #input: ForwardInput;
  readonly #body: UpstreamRequest['body'];
  readonly #caller: ForwardCaller;
  readonly #downstream: ClientResponse;
  readonly #responseTimeoutMs: number;
  /** One fixed deadline from the queue to the last byte. Progress does not extend it. */
  readonly #answerWithinMs: number | undefined;
  readonly #startedMs = performance.now();
  #state: State = 'queued';
  #upstream: UpstreamExchange | undefined;
  /** Times at which it got a connection, and at which the upstream had finished. */
  #sentMs: number | undefined;
  #finishedMs = 0;
  #isRetried = false;
  /** Of the upstream's response; 0: there is none yet. */
  #upstreamStatus = 0;
  /** Applies hooks to the response. Undefined without hooks: the response then goes straight to the client. */
  #relay: ResponseRelay | undefined;
  /** Stops the watch over a streaming request body. */
  #stopWatching: (() => void) | undefined;
  #answerTimer: NodeJS.Timeout | undefined;
  #collectTimer: NodeJS.Timeout | undefined;
  #sendTimer: NodeJS.Timeout | undefined;

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
    this.#responseTimeoutMs = input.limits?.responseTimeoutMs ?? options.responseTimeoutMs;
    // Features rely on their deadline, so route limits only shorten it. A handshake has no body to wait for.
    const withinMs = input.upgrade === undefined ? input.hooks?.answerWithinMs : this.#responseTimeoutMs;
    this.#answerWithinMs = withinMs && Math.min(withinMs, this.#responseTimeoutMs);
    this.#downstream = new ClientResponse(input.incoming, input.response, options, this);
  }

  start(): void {
    if (this.#downstream.isGone && !this.#outlivesClient) {
      this.#conclude('aborted', unsent);
      return;
    }
    if (this.#answerWithinMs !== undefined) this.#awaitAnswer(this.#answerWithinMs);
    const { request, hooks, sender, upgrade } = this.#input;
    const { method, path, query, fields } = request;
    const upstreamRequest: UpstreamRequest = {
      method,
      // The target that was decided on, byte for byte.
      target: path + query,
      fields: hooks?.requestFields === undefined ? fields : editFields(fields, hooks.requestFields),
      body: this.#body,
      sender,
      isUpgrade: upgrade !== undefined,
      maySend: hooks === undefined ? undefined : () => this.#maySend(hooks),
    };
    this.#upstream = this.#options.client.dispatch(upstreamRequest, this);
  }

  /** Instead of `start`: the request's body could not be read. */
  refuse(rejection: Rejection): void {
    this.#conclude('request-body', unsent, rejection);
  }

  onConnection(): void {
    this.#enter('sent');
    this.#sentMs = performance.now();
    if (this.#body !== null && !Buffer.isBuffer(this.#body)) this.#stopWatching = this.#watchBody();
    if (this.#answerWithinMs === undefined) this.#awaitAnswer(this.#responseTimeoutMs);
  }

  onRetry(): void {
    this.#expect('sent');
    this.#isRetried = true;
    this.#progress();
  }

  onSent(): void {
    this.#expect('sent', 'streaming');
    clearTimeout(this.#sendTimer);
    this.#progress();
  }

  onInformational(status: number, fields: FieldList): void {
    this.#expect('sent');
    this.#progress();
    this.#downstream.inform(status, fields);
  }

  onHead(status: number, reason: string, fields: FieldList): void {
    this.#enter('streaming');
    const { clock } = this.#options;
    if (clock?.isDue) clock.hearShop(fields, performance.now() - this.#startedMs);
    const kept = endToEndFields(fields, status, this.#options.references, this.#input.request);
    this.#upstreamStatus = status;
    this.#progress();
    const { hooks, request } = this.#input;
    if (hooks === undefined) {
      this.#downstream.begin(status, reason, this.#caller.editResponse?.(kept, status) ?? kept);
      return;
    }
    const head = { status, reason, fields: kept };
    this.#relay = new ResponseRelay(hooks, request.method, head, this.#downstream, this.#caller);
    if (this.#relay.begin() && this.#answerWithinMs === undefined) {
      const passOn = () => this.#relay?.passThrough();
      this.#collectTimer = setTimeout(isolated(passOn, this.#onBroken), collectTimeoutMs);
    }
  }

  onUpgrade(fields: FieldList, upstream: Socket): void {
    const { upgrade, request } = this.#input;
    this.#endUpstream();
    const kept = endToEndFields(fields, 101, this.#options.references, request);
    const downstream = this.#downstream.upgrade(this.#caller.editResponse?.(kept, 101) ?? kept, request);
    if (upgrade === undefined || downstream === undefined) upstream.destroy();
    else upgrade.join(downstream, upstream);
    this.#report(downstream === undefined ? 'client-gone' : 'sent');
  }

  onData(chunk: Buffer, release?: () => void): boolean {
    this.#expect('streaming');
    this.#progress();
    return (this.#relay ?? this.#downstream).write(chunk, release);
  }

  onEnd(): void {
    this.#expect('streaming');
    this.#endUpstream();
    const { hooks } = this.#input;
    if (hooks !== undefined && this.#relay !== undefined) this.#answer(hooks, this.#relay);
    else this.#finish({});
  }

  onFault({ kind, sent, answerBegun, cause }: UpstreamFault): void {
    if (this.#isUnderWay) {
      const why = kind === 'aborted' ? (cause as EndReason) : undefined;
      if (kind !== 'aborted') this.#conclude(kind, { sent, answerBegun, cause });
      else if (isRejection(why)) this.#conclude(kind, { sent, answerBegun }, why);
      else this.#conclude(why ?? kind, { sent, answerBegun });
    } else if (kind === 'internal') this.#refuseFault(cause);
  }

  onDrain(): void {
    if (this.#state !== 'streaming') return;
    this.#progress();
    this.#upstream?.resume();
  }

  onGone(): void {
    if (!this.#isUnderWay) return;
    // The upstream may be paused, because the client did not read.
    if (this.#outlivesClient) this.onDrain();
    else this.#abort(undefined);
  }

  get #isUnderWay(): boolean {
    return this.#state !== 'settling' && this.#state !== 'done';
  }

  get #outlivesClient(): boolean {
    const ignored = this.#input.hooks?.ignoreClientAbort ?? false;
    return ignored === 'once-sent' ? this.#state !== 'queued' : ignored;
  }

  #enter(next: State): void {
    if (!successors[this.#state].includes(next)) throw new TypeError(`${next} after ${this.#state}`);
    this.#state = next;
  }

  #expect(state: State, or: State = state): void {
    if (this.#state !== state && this.#state !== or) throw new TypeError(`${this.#state}, not ${state}`);
  }

  /** The upstream client calls `onFault` with this cause before this method returns. */
  #abort(why: EndReason): void {
    this.#upstream?.abort(why);
  }

  readonly #onBroken = (): void => this.#abort('internal');

  #awaitAnswer(withinMs: number): void {
    const onTimeout = isolated(() => this.#onTimeout(), this.#onBroken);
    this.#answerTimer = setTimeout(onTimeout, withinMs);
  }

  #onTimeout(): void {
    // While the client does not read, the upstream cannot send; the client has a deadline of its own.
    if (this.#downstream.isBlocked && this.#answerWithinMs === undefined) this.#progress();
    else this.#abort('timeout');
  }

  #progress(): void {
    if (this.#answerWithinMs === undefined) this.#answerTimer?.refresh();
  }

  #maySend({ maySend, sendWithinMs }: UpstreamHooks): boolean {
    if (maySend?.() === false) return false;
    if (sendWithinMs !== undefined) {
      clearTimeout(this.#sendTimer);
      const onLate = isolated(() => this.#abort('late'), this.#onBroken);
      this.#sendTimer = setTimeout(onLate, sendWithinMs);
    }
    return true;
  }

  #watchBody(): () => void {
    const { request, response, incoming, limits } = this.#input;
    const { bodyLimitBytes, bodyTimeoutMs } = this.#options;
    sendContinue(request, response);
    return watchBody(
      incoming,
      { bodyLimitBytes: limits?.requestBodyBytes ?? bodyLimitBytes, bodyTimeoutMs },
      (rejection) => this.#abort(rejection),
      () => this.#progress(),
    );
  }

  #stopTimers(): void {
    clearTimeout(this.#answerTimer);
    clearTimeout(this.#collectTimer);
    clearTimeout(this.#sendTimer);
  }

  /** The upstream has finished: stops all timers, and stops reading the request's body. */
  #endUpstream(): void {
    this.#enter('settling');
    this.#finishedMs = performance.now();
    this.#stopTimers();
    this.#stopWatching?.();
  }

  /** Called when the upstream's response is complete; asks `onOutcome`. */
  #answer(hooks: UpstreamHooks, relay: ResponseRelay): void {
    const finish = (edits: ResponseEdits | HookFailure) => {
      if (this.#state !== 'settling') return;
      if ('failure' in edits) throw edits.failure;
      this.#finish(edits);
    };
    const fail = (cause: unknown) => {
      if (this.#state === 'settling') isolate(() => this.#refuseFault(cause), this.#giveUp);
      else endAlone(cause, this.#giveUp);
    };
    try {
      const edits = askForEdits(hooks, relay.outcome());
      // Edits that are known at once cost no promise.
      if (edits instanceof Promise) isolateLate(edits.then(finish).catch(fail), this.#giveUp);
      else finish(edits);
    } catch (cause) {
      fail(cause);
    }
  }

  #finish(edits: ResponseEdits): void {
    if (edits.rejection !== undefined && this.#relay?.mayBeReplaced === true) {
      this.#refuse(edits.rejection, undefined, undefined);
      return;
    }
    if (this.#relay === undefined) this.#downstream.end();
    else this.#relay.end(edits);
    this.#report(this.#downstream.isGone ? 'client-gone' : 'sent');
  }

  /** The upstream's response is missing or incomplete. */
  #conclude(fault: ForwardFault, seen: Seen, rejection?: Rejection): void {
    this.#endWithout(fault, seen, rejection).catch((thrown) => endAlone(thrown, this.#giveUp));
  }

  async #endWithout(
    fault: ForwardFault,
    { sent, answerBegun, cause }: Seen,
    rejection: Rejection | undefined,
  ): Promise<void> {
    this.#endUpstream();
    let why = cause;
    if (this.#input.hooks !== undefined) {
      const edits = await askForEdits(this.#input.hooks, outcomeOfFault(fault, sent));
      if (this.#state !== 'settling') return;
      if ('failure' in edits) why ??= edits.failure;
    }
    if (rejection !== undefined) this.#refuse(rejection, undefined, why);
    else this.#refuse(rejectionOfFault(fault, answerBegun, cause), fault, why);
  }

  /** Even ending the exchange threw an exception: the client's connection is closed, and the caller is told once. */
  readonly #giveUp = (): void => {
    const isConcluded = this.#state === 'done';
    this.#state = 'done';
    this.#stopTimers();
    this.#downstream.abandon();
    if (!isConcluded) this.#caller.conclude(this.#resultOf('cut', undefined, 'internal'));
  };

  /** An exception in shopward, after the upstream had answered. */
  #refuseFault(cause: unknown): void {
    if (this.#state === 'settling') this.#refuse(rejectionOfFault('internal', true), undefined, cause);
  }

  #refuse(rejection: Rejection, fault: ForwardFault | undefined, cause: unknown): void {
    if (this.#downstream.isGone) {
      this.#report('client-gone', undefined, fault, cause);
    } else if (this.#downstream.isBegun) {
      this.#downstream.cut();
      this.#report('cut', undefined, fault, cause);
    } else {
      this.#downstream.withdraw();
      this.#report('rejected', rejection, fault, cause);
    }
  }

  #report(end: ForwardResult['end'], rejection?: Rejection, fault?: ForwardFault, cause?: unknown): void {
    this.#enter('done');
    this.#caller.conclude(this.#resultOf(end, rejection, fault, cause));
  }

  #resultOf(
    end: ForwardResult['end'],
    rejection: Rejection | undefined,
    fault: ForwardFault | undefined,
    cause?: unknown,
  ): ForwardResult {
    const sentMs = this.#sentMs ?? this.#finishedMs;
    return {
      end,
      rejection,
      status: this.#downstream.status,
      upstreamStatus: this.#upstreamStatus,
      fault,
      cause,
      queuedMs: sentMs - this.#startedMs,
      upstreamMs: this.#finishedMs - sentMs,
      bytes: this.#downstream.bytes,
      retried: this.#isRetried,
    };
  }
}
