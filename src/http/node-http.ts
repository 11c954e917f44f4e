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
