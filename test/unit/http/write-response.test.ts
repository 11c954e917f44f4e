import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { isBodyPending, mustClose } from '../../../src/http/write-response.ts';

interface Said {
  readonly headers?: Readonly<Record<string, string>>;
  readonly complete?: boolean;
  readonly destroyed?: boolean;
  readonly readableFlowing?: boolean | null;
}

/** The members of a request that these functions use. */
function incomingOf(said: Said): IncomingMessage & { readonly isPaused: boolean } {
  const incoming = Object.assign(new EventEmitter(), {
    ...{ complete: false, destroyed: false, readableFlowing: null, headers: {}, isPaused: false, ...said },
    resume: () => incoming,
    pause: () => Object.assign(incoming, { isPaused: true }),
  });
  return incoming as never;
}

const lengthOf = (length: number) => ({ 'content-length': String(length) });

test.each<[string, boolean, boolean, Said]>([
  ['none', false, false, {}],
  ['of no octet', false, false, { headers: lengthOf(0) }],
  ['of an octet', true, false, { headers: lengthOf(1) }],
  ['of the greatest length that is read and discarded', true, false, { headers: lengthOf(65_536) }],
  ['longer', true, true, { headers: lengthOf(65_537) }],
  ['of unknown length', true, true, { headers: { 'transfer-encoding': 'chunked' } }],
  ['that waits for 100 Continue', true, true, { headers: { ...lengthOf(1), expect: '100-continue' } }],
  ['that has been read in part', true, true, { headers: lengthOf(1), readableFlowing: false }],
  ['that is here', false, false, { headers: lengthOf(65_537), complete: true }],
  ['that never comes', false, false, { headers: lengthOf(65_537), destroyed: true }],
])('a body %s: pending %s, closes %s', (_, isPending, closes, said) => {
  expect([isBodyPending(incomingOf(said)), mustClose(incomingOf(said))]).toEqual([isPending, closes]);
});
