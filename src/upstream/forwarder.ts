import { isRejection, type Rejection, reject } from '../http/rejection.ts';
import { isolated } from '../lib/faults.ts';
import type { ForwardCaller, ForwardInput } from './forward.ts';
import { type ExchangeOptions, ForwardedExchange } from './forwarded-exchange.ts';
import type { UpstreamRequest } from './port.ts';
import { readWholeBody, sendContinue } from './request-body.ts';

/** Bodies that stream, and so occupy a connection for as long as their clients send. */
interface StreamingBodyLimit {
  /** Counts one body; call `leave` in any case. `isBeyond`: the limit is reached. `takeFor`: whether this client is within its share. */
  enter(): { readonly isBeyond: boolean; takeFor(clientAddress: string): boolean; leave(): void };
}

/** Exported for its tests. */
export interface ForwarderOptions extends ExchangeOptions {
  /** Fewer than `upstream.connections`, so that streaming bodies never take all of them. Each client has a share. */
  readonly streamingBodies: StreamingBodyLimit;
  /** Announced length up to which a body is read whole before a connection is taken. Default 65536. Only tests set it. */
  readonly wholeBodyBytes?: number;
}

export interface Forwarder {
  /** Returns a promise only if the body has to be read first; `caller` is told the end. */
  forward(input: ForwardInput, caller: ForwardCaller): Promise<void> | undefined;
  readonly inFlight: number;
  readonly queued: number;
  close(): Promise<void>;
}

/** Forwards a decided request and its response. */
export function createForwarder(options: ForwarderOptions): Forwarder {
  const wholeBodyBytes = options.wholeBodyBytes ?? 65_536;
  const start = (input: ForwardInput, body: UpstreamRequest['body'] | Rejection, caller: ForwardCaller) => {
    if (isRejection(body)) new ForwardedExchange(options, input, null, caller).refuse(body);
    else new ForwardedExchange(options, input, body, caller).start();
  };
  return {
    forward(input, caller) {
      const { request, incoming } = input;
      const { body } = request;
      if (body === 'none' || input.body !== undefined) {
        start(input, input.body ?? null, caller);
        return undefined;
      }
      const length = typeof body === 'object' ? body.length : undefined;
      const { bodyTimeoutMs } = options;
      const bodyLimitBytes = input.limits?.requestBodyBytes ?? options.bodyLimitBytes;
      if (length !== undefined && length > bodyLimitBytes) {
        start(input, reject('payload-too-large'), caller);
      } else if (length !== undefined && length <= wholeBodyBytes) {
        const whole = readWholeBody(incoming, body, { bodyLimitBytes, bodyTimeoutMs }, () =>
          sendContinue(request, input.response),
        );
        return whole.then((read) => start(input, read, caller));
      } else {
        const leave = enterStreaming(options.streamingBodies, input);
        if (leave === undefined) start(input, noSlot, caller);
        else start(input, { stream: incoming, length }, leaving(caller, leave));
      }
      return undefined;
    },
    get inFlight() {
      return options.client.inFlight;
    },
    get queued() {
      return options.client.queued;
    },
    close: () => options.client.close(),
  };
}

const noSlot = reject('overloaded', { reason: 'arriving-bodies', retryAfterSeconds: 1 });

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
 * Undefined: the limit is reached. The body counts until it or its exchange ends: Node emits no event, not even `close`, for
 * the body of a request that was answered before it was read.
 */
function enterStreaming(
  bodies: StreamingBodyLimit,
  { request, incoming }: ForwardInput,
): (() => void) | undefined {
  const slot = bodies.enter();
  if (slot.isBeyond || !slot.takeFor(request.clientAddress)) {
    slot.leave();
    return undefined;
  }
  const leave = isolated(() => {
    incoming.off('end', leave);
    slot.leave();
  });
  incoming.on('end', leave);
  return leave;
}
