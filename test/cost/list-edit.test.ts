import { expect, it } from 'vitest';
import { WatchedList } from '../../src/access/watched-list.ts';

/** Milliseconds of CPU that an edit takes from requests: it is read, compiled and rendered between them. */
async function servingMs(rows: number): Promise<number> {
  const lines = Array.from({ length: rows }, (_, i) => `    - GET /shop-${i % 700}/items-${i}/{id}`);
  const listOf = (lines: readonly string[]) => `groups:\n  A:\n${lines.join('\n')}\ncomplete: true\n`;
  const list = new WatchedList({
    file: 'list.yaml',
    text: listOf(lines.slice(0, 1)),
    paths: { ignoredPrefixes: [] },
    isWatched: false,
    log: { debug: () => {} } as never,
  });
  const before = process.threadCpuUsage();
  await list.apply({ bytes: Buffer.from(listOf(lines)) });
  const { user, system } = process.threadCpuUsage(before);
  if (list.current().rows.length !== rows) throw new Error('not compiled');
  return (user + system) / 1000;
}

/** At four times the rows at most six times the CPU of the thread on which requests are served. */
it('an edit of the list costs the serving thread as much as it is long', { timeout: 120_000 }, async () => {
  await servingMs(1000);
  let least = Number.POSITIVE_INFINITY;
  let most = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 8 && (run === 0 || most > 6 * least); run += 1) {
    least = Math.min(least, await servingMs(15_000));
    most = Math.min(most, await servingMs(60_000));
  }
  expect(most).toBeLessThanOrEqual(6 * least);
});
