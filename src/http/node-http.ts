/**
 * What is used of node:http at run time. Importing a built-in module reads every export that it has, and three of
 * node:http's (`WebSocket` and its events) load Node's own undici: a sixth of the CPU of a start, in every worker, for
 * nothing. This way no export is read but these.
 */
export const { Agent, createServer, IncomingMessage, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule('node:http');

/** A request that knows whether its body came with its head. */
export interface EarlyBody {
  /**
   * Calls `take` once, which must not throw: with the whole body if its end is parsed in this tick of the event loop, else
   * with undefined by the end of the tick: then read the body as a stream. It must not be read before.
   */
  readEarly(take: (whole: Buffer | undefined) => void): void;
}
