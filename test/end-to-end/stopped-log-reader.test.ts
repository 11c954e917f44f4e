import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  truncateSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { createKeptClient } from '../harness/kept-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import { startShopward } from '../harness/shopward.ts';

let redis: RedisProcess;
let upstream: RecordingUpstream;
let folder: string;
beforeAll(async () => {
  redis = await startRedisProcess();
  upstream = await startRecordingUpstream(() => answer());
  folder = mkdtempSync(path.join(tmpdir(), 'shopward-fifo-'));
});
afterAll(async () => {
  await upstream?.close();
  await redis?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Requests for each process: their lines exceed a pipe and the log buffer of a process (1 MiB). */
const requestsOfOne = 1_000;
/** Makes long and short lines in turn. Segments are short enough to be logged, lines short enough for one write (PIPE_BUF). */
const pathOf = (i: number) => `/stores/${i}${i % 2 === 0 ? '' : `/${'x'.repeat(79)}`.repeat(15)}`;
const clients = 16;

test.each([1, 2])('a stopped log reader delays no request (workers: %i)', async (workers) => {
  const requests = requestsOfOne * workers;
  const fifo = path.join(folder, randomUUID());
  execFileSync('mkfifo', [fifo]);
  // Opened for reading and writing, so that the pipe always has a reader.
  const reader = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
  const shopward = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config: { workers, store: { url: `redis://127.0.0.1:${redis.port}` } },
    launcher: ['sh', '-c', `exec "$@" >'${fifo}'`, 'sh'],
  });
  try {
    const statuses = new Map<number, number>();
    const one = async (client: number) => {
      const connection = createKeptClient(shopward.port);
      for (let i = client; i < requests; i += clients) {
        const { status } = await connection.exchange(
          `GET ${pathOf(i)} HTTP/1.1\r\nHost: shop.example\r\n\r\n`,
        );
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
      connection.close();
    };
    await Promise.all(Array.from({ length: clients }, (_, client) => one(client)));
    expect([...statuses]).toEqual([[200, requests]]);
    expect((await fetch(`${shopward.adminUrl}/livez`)).status).toBe(200);
    // Polls, because an answer omits a worker that is too slow.
    const shows = (page: string, text: RegExp) =>
      eventually(`${text}`, async () =>
        text.test(await (await fetch(shopward.adminUrl + page)).text()) ? true : undefined,
      );
    await shows('/readyz', /log: its reader takes no lines, some are lost/);
    await shows('/metrics', /^shopward_log_dropped_lines_total [1-9]/m);

    // Once the reader continues, every line is complete, and the missing ones are counted.
    const lines = await readUntil(reader, (seen) => count(seen) >= requests);
    expect(count(lines)).toBe(requests);
    expect(lines.some(({ event }) => event === 'log-lines-dropped')).toBe(true);
    await shopward.stop();
  } finally {
    await shopward.kill();
    closeSync(reader);
  }
});

test('after a truncation lines are written at the start of the file; after a rename, to the renamed file', async () => {
  const file = path.join(folder, 'shopward.log');
  const shopward = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    launcher: ['sh', '-c', `exec "$@" >>'${file}'`, 'sh'],
  });
  const linesAfterRequest = async (name: string) => {
    await fetch(`${shopward.url}/stores/1`);
    return eventually(
      'a line',
      () => readFileSync(name, 'utf8').match(/^\{.*"event":"request".*\n/gm) ?? undefined,
    );
  };
  try {
    expect(await linesAfterRequest(file)).toHaveLength(1);
    truncateSync(file);
    expect(await linesAfterRequest(file)).toHaveLength(1);
    renameSync(file, `${file}.1`);
    shopward.signal('SIGHUP');
    await fetch(`${shopward.url}/stores/1`);
    await eventually(
      'two lines',
      () => readFileSync(`${file}.1`, 'utf8').split('"event":"request"').length === 3 || undefined,
    );
    expect(existsSync(file)).toBe(false);
  } finally {
    await shopward.stop();
  }
});

interface Line {
  readonly event: string;
  readonly count?: number;
}

/** Requests with a line, plus those counted as dropped. */
function count(lines: readonly Line[]): number {
  const of = ({ event, count: dropped = 0 }: Line) =>
    event === 'request' ? 1 : event === 'log-lines-dropped' ? dropped : 0;
  return lines.reduce((sum, line) => sum + of(line), 0);
}

async function readUntil(descriptor: number, isDone: (lines: readonly Line[]) => boolean): Promise<Line[]> {
  const lines: Line[] = [];
  const bytes = Buffer.alloc(65_536);
  let rest = '';
  for (const giveUp = AbortSignal.timeout(60_000); !isDone(lines) && !giveUp.aborted; ) {
    try {
      const chunks = `${rest}${bytes.toString('latin1', 0, readSync(descriptor, bytes))}`.split('\n');
      rest = chunks.pop() ?? '';
      for (const chunk of chunks) lines.push(JSON.parse(chunk) as Line);
    } catch (fault) {
      if ((fault as NodeJS.ErrnoException).code !== 'EAGAIN') throw fault;
      await sleep(20);
    }
  }
  return lines;
}
