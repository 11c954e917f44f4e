import { describe, expect, it } from 'vitest';
import { checkList } from '../../../src/access/list-check.ts';
import { packList } from '../../../src/access/packed-list.ts';
import type { ProtectedResources } from '../../../src/access/protected-list.ts';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';
import { ListHistory } from '../../../src/admin/list-history.ts';
import type { Log } from '../../../src/telemetry/log.ts';
import { listOf } from '../access/list-text.ts';

function start() {
  const lines: Readonly<Record<string, unknown>>[] = [];
  const write = (level: string) => (words: object) => void lines.push({ level, ...words });
  const log = { info: write('info'), warn: write('warn'), error: write('error') } as unknown as Log;
  let nowMs = 0;
  const history = new ListHistory(log, () => (nowMs += 1_000));
  const count = (name: string) => history.metrics.find((metric) => metric.name === name)?.value();
  const take = async (before: string, after: string) => history.take(await compare(before, after));
  return { history, take, lines, count };
}

const paths = { ignoredPrefixes: [] };
function compare(before: string, text: string) {
  const { list } = parseProtectedList(before, 'list.yaml');
  const inForce = packList(list ?? ({ file: '', rows: [] } satisfies ProtectedResources), paths);
  return checkList({ file: 'list.yaml', text, paths, inForce }, () => {});
}

describe('the history of the list', () => {
  it('logs and counts each row that an edit changed, with a warning for looser ones', async () => {
    const { history, take, lines, count } = start();
    const scoped = '{ match: GET /scoped, scopes: [admin] }';
    await take(listOf('GET /carts', 'GET /orders', scoped), listOf('GET /orders', 'GET /new', 'GET /scoped'));
    expect(lines.map(({ level, row, looser }) => [level, row, looser])).toEqual([
      ['warn', 'GET /carts', true],
      ['warn', 'GET /scoped', true],
      ['info', 'GET /new', false],
    ]);
    expect(history.edits()).toEqual([
      { atMs: 1_000, counts: { added: 1, removed: 1, changed: 1, looser: 2 } },
    ]);
    expect(count('shopward_list_looser_rows')).toBe(2);
    // More scopes make a row stricter. Another group is no change.
    await take(listOf('GET /scoped'), listOf(scoped));
    await take(listOf('GET /scoped'), listOf('GET /scoped').replace('A:', 'Other:'));
    expect(count('shopward_list_looser_rows')).toBe(2);
    expect(history.edits()[0]?.counts).toMatchObject({ changed: 1, looser: 0 });
  });

  it('does not log or count an edit that changes no row', async () => {
    const { history, take, lines } = start();
    await take(listOf('GET /carts'), `# a remark\n${listOf('GET /carts')}`);
    expect([history.edits().length, lines.length]).toEqual([0, 0]);
  });

  it('keeps the newest 50 edits, and logs at most 500 rows of each', async () => {
    const { history, take, lines } = start();
    const many = Array.from({ length: 600 }, (_, i) => `GET /rows-${i}`);
    await take(listOf(...many), listOf('GET /one'));
    expect(history.edits()[0]?.counts).toMatchObject({ added: 1, removed: 600, changed: 0, looser: 600 });
    expect(lines.filter(({ event }) => event === 'list-row').length).toBe(500);
    expect(lines.at(-1)).toMatchObject({ event: 'list-rows-not-logged', count: 101, looser: 100 });
    for (let i = 0; i < 55; i++) {
      await take(listOf(`GET /a${i}`), listOf(`GET /a${i + 1}`));
    }
    await take(listOf('GET /a'), listOf('GET /b'));
    expect(history.edits().length).toBe(50);
  });

  it('reports at most 500 rows, looser ones first, of an edit of 3,000 rows and rows of 10,000 characters', async () => {
    const long = 'x'.repeat(10_000);
    const before = Array.from({ length: 3_000 }, (_, i) => `GET /covered/rows-${i}`);
    const after = Array.from({ length: 1_000 }, (_, i) => `GET /new-${i}`);
    const checked = await compare(
      listOf('GET /covered/{id}', ...before, `GET /was-${long}`, 'GET /open-now'),
      listOf('GET /covered/{id}', ...after, `GET /${long}`),
    );
    const { difference } = checked;
    const counts = { added: 1_001, removed: 3_002, changed: 0, looser: 2 };
    expect(difference?.counts).toEqual(counts);
    expect(difference?.rows.length).toBe(500);
    expect(difference?.rows.slice(0, 3).map(({ isLooser }) => isLooser)).toEqual([true, true, false]);
    expect(JSON.stringify(checked).length).toBeLessThan(512 * 1024);
  });

  it('reports at most 500 mistakes of a list', async () => {
    const broken = Array.from({ length: 2_000 }, (_, i) => `FETCH /rows-${i}`);
    expect((await compare(listOf(), listOf(...broken))).problems.length).toBe(500);
  });
});
