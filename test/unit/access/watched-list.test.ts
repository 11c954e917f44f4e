import { expect, test } from 'vitest';
import { WatchedList } from '../../../src/access/watched-list.ts';
import { checkList } from '../../../src/access/list-check.ts';
import type { FileBytes } from '../../../src/lib/watched-file.ts';

const listOf = (...rows: string[]) =>
  `groups:\n  A:\n${rows.map((row) => `    - ${row}\n`).join('')}complete: true\n`;
const bytesOf = (text: string): FileBytes => ({ bytes: Buffer.from(text) });
const first = listOf('GET /a');

function open() {
  const logged: string[] = [];
  const log = (level: string) => (entry: object) =>
    void logged.push(`${level} ${(entry as { event: string }).event}`);
  const list = new WatchedList({
    file: 'list.yaml',
    text: first,
    paths: { ignoredPrefixes: [] },
    isWatched: false,
    check: async (question, take) => checkList(question, take),
    log: { info: log('info'), warn: log('warn'), error: log('error'), debug: log('debug') } as never,
  });
  const packed = list.packed();
  const state = () => ({
    rows: list.inForce.rows.length,
    isFirst: list.packed() === packed,
    reloads: [list.reloads.succeeded, list.reloads.failed],
    status: list.health().status,
  });
  return { list, state, logged };
}

const usual = { rows: 1, isFirst: true, reloads: [0, 0], status: 'ok' };

test.each<[string, FileBytes, string]>([
  ['an invalid row', bytesOf(listOf('GET a')), ''],
  ['no groups', bytesOf('complete: true'), ''],
  ['invalid UTF-8', { bytes: Buffer.from([0xff]) }, 'cannot be read: '],
  ['a missing file', { fault: 'ENOENT' }, 'cannot be read: ENOENT'],
])(
  '%s: the list in force stays, and the problem is reported until a good list is applied',
  async (_, content, text) => {
    const { list, state, logged } = open();
    await list.apply(content);
    expect(state()).toEqual({ ...usual, reloads: [0, 1], status: 'degraded' });
    expect(logged).toEqual(['debug list-refused']);
    expect(list.problems()[0]).toMatchObject({ file: 'list.yaml', severity: 'error' });
    expect(list.problems()[0]?.text).toContain(text);
    await list.apply(bytesOf(first));
    expect([state(), list.problems()]).toEqual([{ ...usual, isFirst: false, reloads: [1, 1] }, []]);
  },
);
