import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { frontSuite } from '../../harness/forwarding-front.ts';
import { openRawConnection, type RawResponse } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';
import { brokenAnswers, evil, ok } from './broken-answers.ts';

/** Writes of an upstream: texts, and the milliseconds to wait before each of them but the first. */
type Script = readonly [string, ...(string | number)[]];

const lateMs = 25;

/** Answers without a body by their heads, followed by surplus bytes. */
const bodiless = (
  [
    ['HEAD', `${ok}Content-Length: 4\r\n\r\n`],
    ['HEAD', `${ok}Transfer-Encoding: chunked\r\n\r\n`],
    ['HEAD', `${ok}Content-Type: text/plain\r\n\r\n`],
    ['HEAD', `${ok}Content-Length: 0\r\n\r\n`],
    ['GET', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['GET', 'HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\n'],
    ['GET', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['DELETE', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['GET', 'HTTP/1.1 304 Not Modified\r\n\r\n'],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n'],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ] as const
).flatMap(([method, head]) =>
  (
    [
      ['at once', [head + evil]],
      ['in a separate write', [head, 0, evil]],
      ['25 ms late', [head, lateMs, evil]],
      ['25 ms late, a body', [head, lateMs, 'evil']],
      ['25 ms late, chunks', [head, lateMs, '4\r\nevil\r\n0\r\n\r\n']],
      ['25 ms late, a second head', [head, lateMs, 'HTTP/1.1 100 Continue\r\n\r\n', 5, evil]],
    ] as readonly (readonly [string, Script])[]
  ).map(([how, script]) => [`${method} ${head.slice(9, 12)} ${how}`, method, script, head] as const),
);

/** Unusual but correct answers. */
const fine: readonly (readonly [string, Script, string])[] = [
  [
    'a coding in other letters, after OWS',
    [`${ok}Transfer-Encoding: \tCHUNKED\r\n\r\n4\r\ngood\r\n0\r\n\r\n`],
    'good',
  ],
  ['interim answers first', [`HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n`, 5, answer('good')], 'good'],
  ['512 interim answers', ['HTTP/1.1 102\r\n\r\n'.repeat(512) + answer('good')], 'good'],
  ['one octet at a time', ['H', ...[...answer('good')].slice(1).flatMap((octet) => [0, octet])], 'good'],
  ['no reason, and no space for one', ['HTTP/1.1 200\r\nContent-Length: 4\r\n\r\ngood'], 'good'],
  [
    'a coding of HTTP/1.0',
    ['HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\n0\r\n\r\n'],
    'good',
  ],
];

frontSuite('an answer of the shop', (start) => {
  /** A shop that plays the script for `/odd`, and answers other requests. */
  async function startShop(script: Script) {
    /** Resolves when the late bytes have been written, however busy the machine is. */
    let played = Promise.resolve();
    const { port } = await start(
      async ({ head, connection }) => {
        if (head.includes(' /odd ')) {
          played = play(connection.socket, script);
          return undefined;
        }
        // Waits until the late bytes have arrived.
        if (head.startsWith('GET /slow ')) await played.then(() => sleep(lateMs));
        return answer('next');
      },
      // One connection, so that the next client would get surplus bytes.
      { connections: 1 },
    );

    /** The final answer, without the interim ones. */
    async function ask(method: string, path: string): Promise<RawResponse> {
      const client = await openRawConnection(port);
      await client.write(`${method} ${path} HTTP/1.1\r\nHost: s\r\n\r\n`);
      for (;;) {
        const seen = await client.readResponse(method);
        if (seen.status < 200) continue;
        client.close();
        return seen;
      }
    }
    const next = async (path = '/next') => {
      const { status, body } = await ask('GET', path);
      return [status, body.toString('latin1')];
    };
    /** The next clients get their answers: at once, while bytes may still be on their way, and later. */
    async function expectOwnAnswers(): Promise<void> {
      expect(await next()).toEqual([200, 'next']);
      await played;
      await sleep(lateMs);
      expect(await next()).toEqual([200, 'next']);
    }
    // The odd request meets a used connection, as most requests do.
    expect(await next()).toEqual([200, 'next']);
    return { ask, next, expectOwnAnswers };
  }

  it.each(bodiless)('%s: no client gets the surplus bytes', async (_, method, steps, head) => {
    const { ask, next } = await startShop(steps);
    const seen = await ask(method, '/odd');
    expect([seen.status, seen.body.length]).toEqual([Number(head.slice(9, 12)), 0]);
    const length = /Content-Length: (\d+)/.exec(head)?.[1];
    expect(seen.field('content-length')).toBe(seen.status === 204 ? undefined : length);
    expect(seen.field('transfer-encoding')).toBeUndefined();
    expect(seen.field('set-cookie')).toBeUndefined();
    expect(await next('/slow')).toEqual([200, 'next']);
    expect(await next()).toEqual([200, 'next']);
  });

  it.each(brokenAnswers)('%s: 502', async (_, bytes) => {
    const { ask, expectOwnAnswers } = await startShop([bytes]);
    const seen = await ask('GET', '/odd');
    // If the head was valid, a malformed body cuts the connection of the client.
    expect(seen.status === 502 || !seen.complete, JSON.stringify(seen)).toBe(true);
    if (seen.status !== 502) expect(seen.body.toString('latin1')).not.toMatch(/\r\n|4/);
    await expectOwnAnswers();
  });

  it.each(fine)('%s: passed on', async (_, script, body) => {
    const { ask, expectOwnAnswers } = await startShop(script);
    expect((await ask('GET', '/odd')).body.toString('latin1')).toBe(body);
    await expectOwnAnswers();
  });
});

async function play(socket: Socket, [first, ...rest]: Script): Promise<void> {
  socket.write(first, 'latin1');
  for (const step of rest) {
    if (typeof step === 'string') socket.write(step, 'latin1');
    else if (step === 0) await new Promise((resolve) => setImmediate(resolve));
    else await sleep(step);
  }
}
