import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { FieldList } from '../http/field-list.ts';
import { type Rejection, reject } from '../http/rejection.ts';
import type { UpstreamEngine, UpstreamRequest } from './engine.ts';
import type { ForwardFault } from './fault-rejection.ts';
import { ForwardedExchange } from './forwarded-exchange.ts';
import type { UpstreamHooks } from './hooks.ts';
import {
  type BodyOptions,
  bodyLimits,
  readWholeBody,
  refuseAnnouncedBody,
  sendContinue,
} from './request-body.ts';

/** Bodies that take a connection before they are here whole: how long they take is up to their clients. */
export interface StreamingBodyLimit {
  /** A place, to be left whatever it says; `isBeyond`: all were taken; `takeFor`: whether this client has one left. */
  enter(): { readonly isBeyond: boolean; takeFor(clientAddress: string): boolean; leave(): void };
}

export interface ForwarderOptions extends BodyOptions {
  readonly engine: UpstreamEngine;
  /** Fewer than the engine's connections, so that they never get all of these, and of them a share for each client. */
  readonly streamingBodies: StreamingBodyLimit;
  /** Milliseconds without progress: from the last byte of the request to the head, and between bytes of a body. */
  readonly responseTimeoutMs: number;
  /** Milliseconds in which a client must take what was written to it; its connection is destroyed otherwise. */
  readonly writeStallTimeoutMs: number;
  /** Announced length up to which a body is read whole before a connection is taken. Default 65536. */
  readonly wholeBodyBytes?: number;
  /** Monotonic milliseconds. Default `performance.now`. */
  readonly now?: () => number;
}

export interface ForwardInput {
  readonly request: CanonicalRequest;
  /** Where the body is read from, and whose connection is watched; nothing else of it is looked at. */
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  /** The body, if somebody has read it already. */
  readonly body?: Buffer | undefined;
  readonly hooks?: UpstreamHooks | undefined;
}

/** Who wants a request forwarded. */
export interface ForwardCaller {
  /** Last change to the fields of a forwarded response (CORS, `X-Request-Id`); they are end-to-end fields already. */
  editResponse?(fields: FieldList, status: number): FieldList;
  /** Called exactly once, perhaps before `forward` returns; must not throw. */
  conclude(result: ForwardResult): void;
}

export interface ForwardResult {
  /**
   * `sent`: the response was handed over whole; `rejected`: nothing was written, `rejection` is yours to write; `cut`:
   * the client saw its response break off; `client-gone`: it had left before the end.
   */
  readonly end: 'sent' | 'rejected' | 'cut' | 'client-gone';
  readonly rejection: Rejection | undefined;
  /** Status sent to the client; 0 when none was. */
  readonly status: number;
  /** Status of the upstream's response; 0 when there was none. */
  readonly upstreamStatus: number;
  readonly fault: ForwardFault | undefined;
  /** What broke, for the log; its text may hold anything, its `code` is a stable word. */
  readonly cause: unknown;
  /** Milliseconds until it had a connection, and from there to the end of the upstream's part. */
  readonly queuedMs: number;
  readonly upstreamMs: number;
  /** Bytes of response body handed to the client. */
  readonly bytes: number;
  readonly retried: boolean;
}

export interface Forwarder {
  /** A promise only where the body has to be read first; `caller` hears of the end. */
  forward(input: ForwardInput, caller: ForwardCaller): Promise<void> | undefined;
  readonly inFlight: number;
  readonly queued: number;
  close(): Promise<void>;
}

type AnnouncedBody = Exclude<CanonicalRequest['body'], 'none'>;

/** Sends a decided request on, and its response back. Everything that engines must not differ in is in here. */
export function createForwarder(options: ForwarderOptions): Forwarder {
  const limits = bodyLimits(options);
  const wholeBodyBytes = options.wholeBodyBytes ?? 65_536;

  const isShort = (body: AnnouncedBody) => body !== 'chunked' && body.length <= wholeBodyBytes;
  /** A body that is read while it is forwarded. */
  const forwardStreaming = (input: ForwardInput, body: AnnouncedBody, caller: ForwardCaller) => {
    const start = (read: UpstreamRequest['body'] | Rejection, told = caller) =>
      new ForwardedExchange(options, input, told).start(read);
    const refusal = refuseAnnouncedBody(body, limits.limitBytes);
    if (refusal !== undefined) return start(refusal);
    const leave = enterStreaming(options.streamingBodies, input);
    if (leave === undefined) {
      return start(reject('overloaded', { reason: 'arriving-bodies', retryAfterSeconds: 1 }));
    }
    start(
      { stream: input.incoming, length: body === 'chunked' ? undefined : body.length },
      {
        editResponse: (fields, status) => caller.editResponse?.(fields, status) ?? fields,
        conclude(result) {
          leave();
          caller.conclude(result);
        },
      },
    );
  };

  return {
    forward(input, caller) {
      const { request, incoming } = input;
      const { body } = request;
      const start = (read: Buffer | null | Rejection) =>
        new ForwardedExchange(options, input, caller).start(read);
      if (body === 'none' || input.body !== undefined) start(input.body ?? null);
      else if (isShort(body)) {
        const whole = readWholeBody(incoming, body, limits, () => sendContinue(request, input.response));
        return whole.then(start);
      } else forwardStreaming(input, body, caller);
      return undefined;
    },
    get inFlight() {
      return options.engine.inFlight;
    },
    get queued() {
      return options.engine.queued;
    },
    close: () => options.engine.close(),
  };
}

/**
 * Undefined: there is no room. Otherwise the body counts until its end, or until its exchange leaves: of a request that is
 * answered before it was read to its end Node says nothing more, not even `close`.
 */
function enterStreaming(
  bodies: StreamingBodyLimit,
  { request, incoming }: ForwardInput,
): (() => void) | undefined {
  const place = bodies.enter();
  if (place.isBeyond || !place.takeFor(request.clientAddress)) {
    place.leave();
    return undefined;
  }
  const leave = () => {
    incoming.off('end', leave);
    place.leave();
  };
  incoming.on('end', leave);
  return leave;
}
