import type { ServerResponse } from 'node:http';
import type { ShopSettings } from '../settings.ts';
import { sendWritten, type Written, writePlain } from './write-answer.ts';

/** What is to go wrong with one request; counters are used up when it is decided, not when it happens. */
export type Fault = { readonly kind: 'fail' | 'reset'; readonly isAfterWork: boolean } | null;

export function nextFault(settings: ShopSettings): Fault {
  if (settings.resetNext > 0) {
    settings.resetNext -= 1;
    return { kind: 'reset', isAfterWork: settings.failAfterWork || settings.resetAt === 'mid-body' };
  }
  if (settings.failNext > 0) {
    settings.failNext -= 1;
    return { kind: 'fail', isAfterWork: settings.failAfterWork };
  }
  const isUnlucky = settings.failRate > 0 && Math.random() < settings.failRate;
  return isUnlucky ? { kind: 'fail', isAfterWork: settings.failAfterWork } : null;
}

/** `answer` is null when the work was never begun. */
export function sendFaulty(
  response: ServerResponse,
  settings: ShopSettings,
  fault: Fault,
  answer: Written | null,
): void {
  if (fault?.kind === 'fail') {
    sendWritten(response, writePlain(settings.failStatus, 'Failed on purpose.'));
    return;
  }
  if (answer === null || settings.resetAt === 'before-answer') {
    response.socket?.resetAndDestroy();
    return;
  }
  cutInTheMiddle(response, answer);
}

/** The whole length is announced and half of it sent; an answer without a body loses its connection at once. */
function cutInTheMiddle(response: ServerResponse, answer: Written): void {
  if (answer.body.length === 0 || answer.status === 204) {
    response.socket?.resetAndDestroy();
    return;
  }
  response.writeHead(answer.status, { ...answer.fields, 'content-length': String(answer.body.length) });
  const half = answer.body.subarray(0, Math.ceil(answer.body.length / 2));
  response.write(half, () => response.socket?.destroy());
}
