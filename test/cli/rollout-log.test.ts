import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { runRollout } from '../../src/cli/rollout.ts';
import { LogCounts } from '../../src/cli/rollout-log.ts';
import type { RolloutReport } from '../../src/rollout/report.ts';
import { makeFolder } from '../config/config-folder.ts';

const line = (second: number, more: object = { observed: 'access-token-missing' }) =>
  JSON.stringify({
    ...{ level: 'info', time: new Date(Date.UTC(2026, 2, 1) + second * 1000).toISOString() },
    ...{ event: 'request', method: 'GET', route: '/carts/{id}', clientAddress: '192.0.2.1', ...more },
  });
const lines = (from: number, count: number) => Array.from({ length: count }, (_, i) => line(from + i));

async function read(folder: string, files: readonly string[], input?: string | readonly string[]) {
  const [out, err]: [string[], string[]] = [[], []];
  const io = {
    ...{ cwd: folder, env: {}, out: (text: string) => out.push(text), err: (text: string) => err.push(text) },
    input: (async function* () {
      for (const chunk of [input ?? []].flat()) yield Buffer.from(chunk);
    })(),
  };
  const code = await runRollout(files, { json: true }, io);
  const report = out.length > 0 ? (JSON.parse(out.join('')) as RolloutReport) : undefined;
  return { code, report, refused: report?.rows[0]?.wouldBeRefused, err: err.join('\n') };
}

it('rotated and compressed logs of two replicas are one, in whatever order', async () => {
  const folder = makeFolder({
    'one.log': lines(3_000, 10).join('\n'),
    'other.log': `${lines(2_995, 10).join('\n')}\n`,
  });
  writeFileSync(path.join(folder, 'one.log.1'), gzipSync(lines(2_000, 10).join('\n')));
  // As `cat a.gz b.gz` makes it.
  const members = [lines(0, 5), lines(1_000, 5)].map((some) => gzipSync(`${some.join('\n')}\n`));
  writeFileSync(path.join(folder, 'one.log.2.gz'), Buffer.concat(members));
  writeFileSync(path.join(folder, 'one.log.3.zst'), zstdCompressSync(lines(10, 10).join('\n')));
  const files = ['one.log', 'other.log', 'one.log.1', 'one.log.2.gz', 'one.log.3.zst'];
  const { report, refused } = await read(folder, files);
  expect(refused).toBe(50);
  expect(await read(folder, files.toReversed())).toMatchObject({ refused: 50 });
  expect(report?.rows[0]?.reasons[0]).toMatchObject({
    sinceMs: Date.UTC(2026, 2, 1),
    lastSeenMs: Date.UTC(2026, 2, 1) + 3_009_000,
  });
});

it('what runtimes and the journal put around a line is taken off', async () => {
  const folder = makeFolder({
    'cri.log': `2026-03-01T00:00:00.1Z stdout F ${line(1)}\n`,
    'journal.log': `Mar 01 00:00:00 host shopward[17]: ${line(2)}\n`,
    'docker.log': `${JSON.stringify({ log: `${line(3)}\n`, stream: 'stdout', time: 'x' })}\n`,
  });
  expect(await read(folder, ['cri.log', 'journal.log', 'docker.log'])).toMatchObject({ refused: 3 });
});

it('standard input is read, also compressed once it is unpacked by whoever pipes it', async () => {
  const text = lines(0, 3).join('\n');
  expect(await read(makeFolder({}), ['-'], text)).toMatchObject({ refused: 3 });
});

it('a line may come in pieces, and one that is longer than any of ours hides no other', async () => {
  const [first = '', second = ''] = lines(0, 2);
  const pieces = [first.slice(0, 10), first.slice(10, 60), `${first.slice(60)}\n`];
  const overlong = [JSON.stringify({ path: 'x'.repeat(40_000) }), ' '.repeat(40_000), ' '.repeat(40_000)];
  const { report, refused } = await read(makeFolder({}), ['-'], [...pieces, ...overlong, '\n', second]);
  expect(refused).toBe(2);
  expect(report?.problems[0]).toContain('(2 requests were read');
  expect(report?.problems[0]).toContain('1 lines cannot be read');
});

it('other lines between, an empty file and a last line that is cut off are no fault, and are told', async () => {
  const half = line(9).slice(0, 60);
  const start = JSON.stringify({ event: 'list-reloaded', time: '2026-03-01T00:00:00.000Z' });
  const folder = makeFolder({
    'mixed.log': [start, line(1), '{"other":1}', 'Killed', start, line(2), half].join('\n'),
    'empty.log': '',
  });
  const { report, refused } = await read(folder, ['empty.log', 'mixed.log']);
  expect(refused).toBe(2);
  expect(report?.problems[0]).toContain('2 lines cannot be read');
});

it('one file by two names counts once', async () => {
  const folder = makeFolder({ 'a.log': lines(0, 4).join('\n') });
  const { refused, err } = await read(folder, ['a.log', './a.log']);
  expect([refused, err]).toEqual([4, './a.log is read once: it was named before']);
});

it('nothing is kept of a line that is longer than any of ours', () => {
  const counted = new LogCounts();
  counted.addLine(line(1, { observed: 'access-token-missing', path: 'x'.repeat(70_000) }));
  counted.addLine(line(2));
  expect([counted.requests, counted.others]).toEqual([1, 1]);
});

it.each([
  ['none.log', 'none.log cannot be read: there is no such file'],
  ['folder', 'folder is a folder: name the files in it'],
  ['cut.gz', 'cut.gz cannot be unpacked to its end (Z_BUF_ERROR): it is cut off, or broken'],
  ['pretty.log', 'no line of an access log is in these files (2 lines are something else); its lines are'],
  ['empty.log', 'no line of an access log is in these files; its lines are JSON'],
])('%s is bad usage, in words', async (file, words) => {
  const folder = makeFolder({ 'pretty.log': 'INFO: a request\nINFO: another', 'empty.log': '' });
  mkdirSync(path.join(folder, 'folder'));
  const packed = gzipSync(lines(0, 200).join('\n'));
  writeFileSync(path.join(folder, 'cut.gz'), packed.subarray(0, packed.length - 20));
  const { code, err } = await read(folder, [file]);
  expect(code).toBe(2);
  expect(err).toContain(words);
});

it('says 0 would-be refusals of no log: restarts and gaps do not show in it', async () => {
  const quiet = Array.from({ length: 8 }, (_, day) => line(day * 86_400, { status: 200 }));
  const folder = makeFolder({ 'quiet.log': quiet.join('\n') });
  const { code, report } = await read(folder, ['quiet.log']);
  expect([code, report?.verdict]).toEqual([3, 'not-known']);
  expect(JSON.stringify(report)).not.toContain('0 would-be refusals');
});
