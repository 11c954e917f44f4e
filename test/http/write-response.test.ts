import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, test, vi } from 'vitest';
import { endResponse, isBodyPending, mustClose } from '../../src/http/write-response.ts';

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

function endUnread() {
  const incoming = incomingOf({ headers: lengthOf(9_999_999) });
  const done: string[] = [];
  const response = {
    shouldKeepAlive: false,
    write: (chunk: string) => done.push(`write ${chunk}`),
    flushHeaders: () => done.push('head'),
    end: () => done.push('end'),
  };
  return { incoming, done, response: response as unknown as ServerResponse };
}

test.each([
  ['x', 'write x'],
  ['', 'head'],
  [undefined, 'head'],
])('an answer %j leaves at once, and ends when 64 MiB of the body were dropped', (chunk, left) => {
  const { incoming, done, response } = endUnread();
  const onEnded = vi.fn();
  endResponse(incoming, response, chunk, onEnded);
  incoming.emit('data', Buffer.alloc(67_108_863));
  incoming.emit('data', Buffer.alloc(1));
  expect([done, incoming.isPaused]).toEqual([[left], false]);
  incoming.emit('data', Buffer.alloc(1));
  expect([done, incoming.isPaused, incoming.listenerCount('data')]).toEqual([[left, 'end'], true, 0]);
  // Once only.
  incoming.emit('close');
  expect(done).toEqual([left, 'end']);
});

test.each(['end', 'close'])('or when the body has come to its %s', (event) => {
  const { incoming, done, response } = endUnread();
  endResponse(incoming, response);
  incoming.emit(event);
  expect(done).toEqual(['head', 'end']);
});

test('or when ten seconds have passed', () => {
  vi.useFakeTimers();
  try {
    const { incoming, done, response } = endUnread();
    endResponse(incoming, response);
    vi.advanceTimersByTime(9_999);
    expect(done).toEqual(['head']);
    vi.advanceTimersByTime(1);
    expect(done).toEqual(['head', 'end']);
  } finally {
    vi.useRealTimers();
  }
});
