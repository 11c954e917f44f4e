import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { isBodyPending, mustClose } from '../../src/http/write-response.ts';

interface Said {
  readonly headers?: Readonly<Record<string, string>>;
  readonly complete?: boolean;
  readonly destroyed?: boolean;
  readonly readableFlowing?: boolean | null;
}

/** A request as far as these look at one. */
function incomingOf(said: Said): IncomingMessage & { readonly isPaused: boolean } {
  const incoming = Object.assign(new EventEmitter(), {
    ...{ complete: false, destroyed: false, readableFlowing: null, headers: {}, isPaused: false, ...said },
    resume: () => incoming,
    pause: () => Object.assign(incoming, { isPaused: true }),
  });
  return incoming as never;
}

const lengthOf = (length: number) => ({ 'content-length': String(length) });

test.each<[string, Said, boolean, boolean]>([
  ['none', {}, false, false],
  ['an empty one', { headers: lengthOf(0) }, false, false],
  ['of an octet', { headers: lengthOf(1) }, true, false],
  ['as long as is read away', { headers: lengthOf(65_536) }, true, false],
  ['longer', { headers: lengthOf(65_537) }, true, true],
  ['of unknown length', { headers: { 'transfer-encoding': 'chunked' } }, true, true],
  ['that waits to be asked for', { headers: { ...lengthOf(1), expect: '100-continue' } }, true, true],
  ['that somebody began to read', { headers: lengthOf(1), readableFlowing: false }, true, true],
  ['that is here', { headers: lengthOf(65_537), complete: true }, false, false],
  ['that never comes', { headers: lengthOf(65_537), destroyed: true }, false, false],
])('a body %s is pending, and ends the connection', (_, said, isPending, closes) => {
  expect([isBodyPending(incomingOf(said)), mustClose(incomingOf(said))]).toEqual([isPending, closes]);
});
