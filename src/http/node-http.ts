/**
 * What is used of node:http at run time. Importing a built-in module reads every export that it has, and three of
 * node:http's (`WebSocket` and its events) load Node's own undici: a sixth of the CPU of a start, in every worker, for
 * nothing. This way no export is read but these.
 */
export const { Agent, createServer, IncomingMessage, request, STATUS_CODES } =
  process.getBuiltinModule('node:http');
