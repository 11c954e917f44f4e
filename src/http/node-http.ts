import type { IncomingMessage as Incoming } from 'node:http';
import type { Socket } from 'node:net';

/**
 * The exports of node:http that are used at run time. An import of a built-in module reads all its exports, and three of
 * node:http (`WebSocket` and its events) load Node's own undici: a sixth of the CPU of a start, in every worker. This way
 * only these exports are read.
 */
export const { Agent, createServer, IncomingMessage, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule('node:http');

/** A request that knows whether its body came with its head. */
export interface EarlyBody {
  /**
   * Calls `take` once: with the whole body if its end is parsed in this tick of the event loop, else with undefined by the
   * end of the tick. Only then may the body be read as a stream. `take` must not throw.
   */
  readEarly(take: (whole: Buffer | undefined) => void): void;
}

export const stoppedParser = 'HPE_CB_HEADERS_COMPLETE';

/**
 * Stops the parser of a socket at the first head for which `isDue`; all further octets are an error with the code
 * `stoppedParser`. Node parses a whole read of 64 KiB at once, makes a request and a response for every 18 octets, and keeps
 * them until the connection ends; no option prevents this. If the parser cannot be stopped, only memory is lost.
 */
export function stopParserWhen(socket: Socket, isDue: (incoming: Incoming) => boolean): void {
  const { parser } = socket as { parser?: { onIncoming?: (...of: [Incoming, boolean]) => number } };
  const onIncoming = parser?.onIncoming;
  if (parser === undefined || typeof onIncoming !== 'function') return;
  parser.onIncoming = (incoming, keepAlive) => (isDue(incoming) ? -1 : onIncoming(incoming, keepAlive));
}
