import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocketForwarder } from '../forwarding/websocket.ts';
import { isRejection, type Rejection, reject } from '../rejections/rejection.ts';
import type { Rejections } from '../rejections/table.ts';
import type { CanonicalRequest } from '../request/canonical-request.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import type { PathForLog } from '../telemetry/path-for-log.ts';
import { endWithRejection } from './client-error.ts';

export interface UpgradeOptions {
  canonicalise(incoming: IncomingMessage): CanonicalRequest | Rejection;
  /** The same admission as for every other request. */
  admit(
    request: CanonicalRequest,
    notes: { route: string; observe(rejection: Rejection): void },
  ): { request: CanonicalRequest } | Rejection | Promise<{ request: CanonicalRequest } | Rejection>;
  readonly forwarder: WebSocketForwarder;
  readonly rejections: Rejections;
  readonly pathForLog: PathForLog;
  record(record: ExchangeRecord): void;
  /** Something broke in a way that a person should look at. */
  onFault(fault: unknown, requestId: string): void;
}

/** WebSocket handshakes (RFC 6455): the line of every other request, on a bare socket. Never rejects. */
export function createUpgradeHandler(options: UpgradeOptions) {
  const handle = async (
    incoming: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    refuse: (rejection: Rejection) => void,
  ): Promise<void> => {
    const startedMs = performance.now();
    const request = options.canonicalise(incoming);
    if (isRejection(request)) return refuse(request);

    const notes = { route: '*', observed: undefined as Rejection | undefined, observe: noteFirst };
    const admission = await options.admit(request, notes);
    let status = 0;
    let rejection: Rejection | undefined;
    if (isRejection(admission)) {
      rejection = admission;
      refuse(admission);
    } else {
      const result = await options.forwarder.forward(admission.request, socket, head, refuse);
      ({ status, rejection } = result);
    }
    options.record({
      requestId: request.requestId,
      method: request.method,
      route: notes.route,
      path: options.pathForLog(request.segments),
      decision: rejection === undefined ? 'forwarded' : 'refused',
      status: rejection === undefined ? status : options.rejections[rejection.rejection].status,
      rejection: rejection?.rejection,
      reason: (rejection ?? notes.observed)?.reason,
      observed: notes.observed?.rejection,
      durationMs: performance.now() - startedMs,
      clientAddress: request.clientAddress,
    });
  };
  return async (incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    socket.on('error', () => socket.destroy());
    const refuse = (rejection: Rejection) => endWithRejection(socket, rejection, options.rejections);
    try {
      await handle(incoming, socket, head, refuse);
    } catch (fault) {
      options.onFault(fault, '');
      if (socket.writable) refuse(reject('internal-error', { reason: 'fault' }));
      else socket.destroy();
    }
  };
}

function noteFirst(this: { observed: Rejection | undefined }, rejection: Rejection): void {
  this.observed ??= rejection;
}
