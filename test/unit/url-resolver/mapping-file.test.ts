import { mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { until } from '../../harness/redis-processes.ts';
import { createResolver, entityOf, resolve, targetOf } from './resolver-request.ts';
import { catalogue, startShop } from './shop.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'shopward-mapping-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const header = 'url,entityType,entityId\n';

describe('a mapping file as a source', () => {
  const row = (id: string) => `${header}/en/acer,abstract-products,${id}\n`;
  const acer = targetOf('/en/acer');

  async function start(more = {}) {
    const path = join(directory, 'map.csv');
    writeFileSync(path, row('1'));
    const resolver = createResolver({ mappingFile: { path, pollMs: 10, stableMs: 5 }, ...more });
    expect(await resolver.start()).toEqual([]);
    const idNow = async () => entityOf((await resolve(resolver, acer)).body)[1];
    return { path, resolver, idNow };
  }

  it('answers without the shop, found or not', async () => {
    const { resolver } = await start();
    const answer = await resolve(resolver, acer);
    expect(answer.field('Cache-Status')).toBe('shopward; hit; detail=mapping-file');
    expect((await resolve(resolver, targetOf('/x'))).rejection).toBe('url-not-found');
    expect(resolver.stats()).toMatchObject({
      fileAnswers: 2,
      entries: 0,
      file: { rows: 1, problems: [] },
    });
    await resolver.close();
  });

  it('is read again after an edit, a rename over it, and a changed symlink', async () => {
    const { path, resolver, idNow } = await start();
    writeFileSync(path, row('2'));
    await until(async () => (await idNow()) === '2');
    writeFileSync(`${path}.new`, row('3'));
    renameSync(`${path}.new`, path);
    await until(async () => (await idNow()) === '3');
    writeFileSync(join(directory, 'four.csv'), row('4'));
    writeFileSync(join(directory, 'five.csv'), row('5'));
    unlinkSync(path);
    symlinkSync('four.csv', path);
    await until(async () => (await idNow()) === '4');
    symlinkSync('five.csv', `${path}.link`);
    renameSync(`${path}.link`, path);
    await until(async () => (await idNow()) === '5');
    await resolver.close();
  });

  it('keeps the last good table after a bad edit, and reports the problem', async () => {
    const { path, resolver, idNow } = await start();
    writeFileSync(path, 'nonsense\n');
    await until(async () => resolver.stats().file?.problems.length !== 0);
    expect(resolver.stats().file?.problems[0]).toMatchObject({ file: path, line: 1, column: 1 });
    expect(await idNow()).toBe('1');
    unlinkSync(path);
    expect(await resolver.reload()).toMatchObject([{ text: 'there is no such file' }]);
    expect(await idNow()).toBe('1');
    writeFileSync(path, row('2'));
    await until(async () => (await idNow()) === '2');
    await resolver.close();
  });

  it('comes first; the shop is asked for other URLs', async () => {
    const shop = await startShop(
      catalogue({ '/en/acer': ['merchants', 'no'], '/en/b': ['merchants', 'MER1'] }),
    );
    const { resolver, idNow } = await start({ upstream: { ask: shop.ask } });
    expect(await idNow()).toBe('1');
    expect(entityOf((await resolve(resolver, targetOf('/en/b'))).body)).toEqual(['merchants', 'MER1']);
    expect(shop.requests.map(({ url }) => url)).toEqual(['/url-resolver?url=%2Fen%2Fb']);
    await resolver.close();
    await shop.close();
  });

  it('start returns the problems of the first load', async () => {
    const path = join(directory, 'bad.csv');
    writeFileSync(path, 'x\n');
    const resolver = createResolver({ mappingFile: { path, stableMs: 0 } });
    expect((await resolver.start()).map(({ text }) => text)).toContain('unknown column x');
    await resolver.close();
  });
});
