import { isRejection, type Rejection, reject } from '../http/rejection.ts';
import { isolated } from '../lib/faults.ts';
import type { UpstreamRequest } from './engine.ts';
import type { ForwardCaller, ForwardInput } from './forward.ts';
import { type ExchangeOptions, ForwardedExchange } from './forwarded-exchange.ts';
import { bodyLimits, readWholeBody, sendContinue } from './request-body.ts';

/** Bodies that take a connection before they are here whole: how long they take is up to their clients. */
interface StreamingBodyLimit {
  /** A place, to be left whatever it says; `isBeyond`: all were taken; `takeFor`: whether this client has one left. */
  enter(): { readonly isBeyond: boolean; takeFor(clientAddress: string): boolean; leave(): void };
}

/** Exported for its tests. */
export interface ForwarderOptions extends ExchangeOptions {
  /** Fewer than the engine's connections, so that they never get all of these, and of them a share for each client. */
  readonly streamingBodies: StreamingBodyLimit;
  /** Announced length up to which a body is read whole before a connection is taken. Default 65536. Only tests set it. */
  readonly wholeBodyBytes?: number;
}

export interface Forwarder {
  /** A promise only where the body has to be read first; `caller` hears of the end. */
  forward(input: ForwardInput, caller: ForwardCaller): Promise<void> | undefined;
  readonly inFlight: number;
  readonly queued: number;
  close(): Promise<void>;
}

/** Sends a decided request on, and its response back. Everything that engines must not differ in is in here. */
export function createForwarder(options: ForwarderOptions): Forwarder {
  const usual = bodyLimits(options);
  const limitsOf = ({ limits }: ForwardInput) =>
    limits === undefined ? usual : { ...usual, limitBytes: limits.requestBodyBytes };
  const wholeBodyBytes = options.wholeBodyBytes ?? 65_536;
  const start = (input: ForwardInput, body: UpstreamRequest['body'] | Rejection, caller: ForwardCaller) => {
    if (isRejection(body)) new ForwardedExchange(options, input, null, caller).refuse(body);
    else new ForwardedExchange(options, input, body, caller).start();
  };
  return {
    forward(input, caller) {
      const { request, incoming } = input;
      const { body } = request;
      const length = typeof body === 'object' ? body.length : undefined;
      const limits = limitsOf(input);
      if (body === 'none' || input.body !== undefined) start(input, input.body ?? null, caller);
      else if (length !== undefined && length > limits.limitBytes) {
        start(input, reject('payload-too-large'), caller);
      } else if (length !== undefined && length <= wholeBodyBytes) {
        const whole = readWholeBody(incoming, body, limits, () => sendContinue(request, input.response));
        return whole.then((read) => start(input, read, caller));
      } else {
        const leave = enterStreaming(options.streamingBodies, input);
        if (leave === undefined) start(input, noPlace, caller);
        else start(input, { stream: incoming, length }, leaving(caller, leave));
      }
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

const noPlace = reject('overloaded', { reason: 'arriving-bodies', retryAfterSeconds: 1 });

function leaving(caller: ForwardCaller, leave: () => void): ForwardCaller {
  return {
    editResponse: (fields, status) => caller.editResponse?.(fields, status) ?? fields,
    conclude(result) {
      leave();
      caller.conclude(result);
    },
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
  const leave = isolated(() => {
    incoming.off('end', leave);
    place.leave();
  });
  incoming.on('end', leave);
  return leave;
}
