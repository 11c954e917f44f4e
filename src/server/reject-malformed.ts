import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { RejectionName } from '../http/rejection.ts';
import { reject } from '../http/rejection.ts';
import { renderRejection } from '../http/write-response.ts';
import { endWithAnswer } from './client-error.ts';
import type { ExchangeContext } from './exchange.ts';
import { readUnread, toExchangeRecord } from './exchange-meta.ts';

/** Refuses what is no request (too large, malformed, too slow, CONNECT), and records it as any other refusal. */
export function createRejectMalformed({
  rejections,
  pathForLog,
  record,
}: Pick<ExchangeContext, 'rejections' | 'pathForLog' | 'record'>) {
  return (why: RejectionName, socket: Duplex): void => {
    const rejection = reject(why, { reason: 'unread' });
    const answer = renderRejection(rejection, rejections);
    const { remoteAddress: peerAddress = '', bytesRead } = socket as Socket;
    const unread = readUnread();
    const noted = {
      request: undefined,
      unread,
      route: '*',
      observed: undefined,
      startedMs: performance.now(),
    };
    endWithAnswer(socket, answer, ['X-Request-Id', unread.requestId]);
    // A browser opens connections ahead of need, and lets them time out: nobody asked for anything.
    if (bytesRead === 0) return;
    const outcome = { decision: 'refused', status: answer.status, rejection } as const;
    record(toExchangeRecord({ ...noted, peerAddress }, outcome, pathForLog));
  };
}
