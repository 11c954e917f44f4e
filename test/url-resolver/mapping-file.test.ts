import { mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { contractEntityTypes as entityTypes } from '../../src/url-resolver/envelope.ts';
import { UrlResolver } from '../../src/url-resolver/filter.ts';
import { readCsv } from '../../src/url-resolver/mapping-file/csv.ts';
import { readMappingFile } from '../../src/url-resolver/mapping-file/read-mapping-file.ts';
import { ProblemList } from '../../src/url-resolver/mapping-file/row-validation.ts';
import { MappingTable } from '../../src/url-resolver/mapping-file/table.ts';
import { until } from '../harness/redis-processes.ts';
import { entityOf, resolve, targetOf } from './resolver-request.ts';
import { catalogue, startShop } from './shop.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'shopward-mapping-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const atOnce = async () => {};

/** Reads `text` as a file called `name`: a table, or problems as `line:col: text`. */
async function read(name: string, text: string | Buffer): Promise<MappingTable | string[]> {
  const path = join(directory, name);
  writeFileSync(path, text);
  const reading = await readMappingFile(path, atOnce);
  if (reading.kind === 'table') return new MappingTable(reading.data);
  return reading.problems.map(({ line, column, text: problem }) => `${line}:${column}: ${problem}`);
}

async function readTable(name: string, text: string | Buffer): Promise<MappingTable> {
  const table = await read(name, text);
  if (Array.isArray(table)) throw new Error(table.join('\n'));
  return table;
}

const header = 'url,entityType,entityId\n';
const type = 'entityType must be one of abstract-products, category-nodes, cms-pages, merchants';

describe('good files', () => {
  it.each([
    ['a.csv', `${header}/en/acer,abstract-products,134\n/de/bücher,category-nodes,7\n`],
    [
      'a.csv',
      `\ufeffentityId,url,entityType\r\n134,/en/acer,abstract-products\r\n\r\n7,/de/bücher,category-nodes\r\n`,
    ],
    [
      'a.csv',
      `"url","entityType","entityId"\n"/en/acer",abstract-products,"134"\n/de/bücher,"category-nodes",7\n`,
    ],
    ['a.csv', `${header.trimEnd()},store\n/en/acer,abstract-products,134,\n/de/bücher,category-nodes,7,\n`],
    [
      'a.yaml',
      '- { url: /en/acer, entityType: abstract-products, entityId: "134" }\n- url: /de/bücher\n  entityType: category-nodes\n  entityId: "7"\n',
    ],
    [
      'a.json',
      '[{"url":"/en/acer","entityType":"abstract-products","entityId":"134"},{"url":"/de/b\\u00fccher","entityType":"category-nodes","entityId":"7"}]',
    ],
  ])('%s %#', async (name, text) => {
    const table = await readTable(name, text);
    expect(table.rows).toBe(2);
    expect(table.find('/en/acer', '')).toEqual({ entityType: 'abstract-products', entityId: '134' });
    expect(table.find('/de/bücher', 'any')).toEqual({ entityType: 'category-nodes', entityId: '7' });
    for (const url of ['/en/ace', '/en/acer/', '/EN/ACER', '', '/', 'ü'.repeat(1024)]) {
      expect(table.find(url, '')).toBeUndefined();
    }
  });

  it('a row of a store wins in its store and is nowhere else', async () => {
    const table = await readTable(
      'a.csv',
      `${header.trimEnd()},store\n/a,merchants,M1,\n/a,merchants,M2,DE\n/b,merchants,M3,AT\n`,
    );
    expect(['', 'DE', 'AT', 'XX'].map((store) => table.find('/a', store)?.entityId)).toEqual([
      'M1',
      'M2',
      'M1',
      'M1',
    ]);
    expect(['', 'DE', 'AT'].map((store) => table.find('/b', store)?.entityId)).toEqual([
      undefined,
      undefined,
      'M3',
    ]);
    expect(table.find('T/b', 'A')).toBeUndefined();
  });

  it('quotes, commas and pieces of any size', async () => {
    const id = fc.stringMatching(/^[\w"',-]{1,12}$/);
    const url = fc.stringMatching(/^\/[\w"',&ü/-]{0,30}$/);
    const quoted = (text: string) => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(url, fc.constantFrom(...entityTypes), id), {
          selector: ([one]) => one,
          minLength: 1,
        }),
        fc.integer({ min: 1, max: 40 }),
        (rows, piece) => {
          const bytes = Buffer.from(header + rows.map((row) => `${row.map(quoted).join(',')}\n`).join(''));
          let at = 0;
          const next = (into: Uint8Array) => {
            const count = bytes.copy(into, 0, at, at + Math.min(piece, into.length));
            at += count;
            return count;
          };
          const problems = new ProblemList();
          const data = readCsv(next, 0, problems);
          expect(problems.list()).toEqual([]);
          if (data === undefined) throw new Error('no table');
          const table = new MappingTable(data);
          for (const [one, entityType, entityId] of rows) {
            expect(table.find(one, '')).toEqual({ entityType, entityId });
          }
        },
      ),
    );
  });
});

describe('problems, all at once, with their places', () => {
  it.each<[string, string | Buffer, string[]]>([
    ['a.csv', '', ['1:1: the header is missing: url,entityType,entityId[,store]']],
    ['a.csv', header, ['1:1: no row']],
    ['a.csv', 'url,entityType\n/a,merchants\n', ['1:1: column entityId is missing']],
    ['a.csv', 'url,entityType,entityId,locale\n', ['1:25: unknown column locale']],
    ['a.csv', 'url,url,entityType,entityId\n', ['1:5: column url twice']],
    [
      'a.csv',
      `${header}/a,merchants\n,merchants,M1\n/ü,customers,\n/ok,merchants,M1\n/b,merchants,M 1 \n`,
      [
        '2:1: 3 columns expected, 2 found',
        '3:1: url is empty',
        `4:4: ${type}`,
        '4:14: entityId is empty',
        '6:14: entityId has spaces around it',
      ],
    ],
    [
      'a.csv',
      `${header}/a,merchants,M1\n/b,merchants,M1\n/a,merchants,M2\n`,
      ['4:1: the same url and store as in line 2'],
    ],
    [
      'a.csv',
      `${header}"/a""b",nobody,1\n"/x\ny",merchants,1\n/c,nobody,1\n`,
      [`2:9: ${type}`, '3:1: url holds a control character', `5:4: ${type}`],
    ],
    [
      'a.csv',
      `${header}"/a"b,merchants,1\n/"a,merchants",1\n`,
      ['2:1: text after a closing quote', '3:1: a quote inside a field that is not quoted'],
    ],
    [
      'a.csv',
      `${header}/a,merchants,1\n/b,merch`,
      ['3:1: the last line does not end with a line break: the file may be written by half'],
    ],
    [
      'a.csv',
      Buffer.from(`${header}/a,merchants,1\n/\xff,merchants,1\n`, 'latin1'),
      ['3:1: the line is not UTF-8'],
    ],
    [
      'a.csv',
      `${header}"/a,merchants,1\n${'x,y,z\n'.repeat(20_000)}`,
      ['2:1: the record is longer than 64 KiB: a quote that is never closed?'],
    ],
    ['a.csv', `${header}/${'x'.repeat(2048)},merchants,1\n`, ['2:1: url is longer than 2048 bytes']],
    [
      'a.yaml',
      '- url: /a\n  entityType: merchants\n  entityId: 5\n',
      ['3:13: entityId must be a string: put it in quotes'],
    ],
    [
      'a.yaml',
      '- url: /a\n  entityType: nobody\n  entityID: "5"\n- x\n',
      [
        '1:3: entityId is missing',
        `2:15: ${type}`,
        '3:13: unknown key entityID',
        '4:3: a row has url, entityType and entityId',
      ],
    ],
    [
      'a.yaml',
      '- url: [\n',
      ['2:1: Flow sequence in block collection must be sufficiently indented and end with a ]'],
    ],
    [
      'a.yaml',
      '- { url: /a, entityType: merchants, entityId: "1" }',
      ['1:1: the last line does not end with a line break: the file may be written by half'],
    ],
    ['a.yaml', 'url: /a\n', ['1:1: a list of rows is expected']],
    [
      'a.json',
      '[{"url":"/a","entityType":"merchants","entityId":"1"},\n {"url":"/a","entityType":"merchants","entityId":"2"}]',
      ['2:9: the same url and store as in row 1 of the list'],
    ],
    ['a.json', '[\n{"url":"/a",}\n]', ['2:13: not JSON: Expected double-quoted property name']],
    [
      'a.json',
      `[${' '.repeat(11_000_000)}]`,
      ['1:1: larger than 10 MB: use CSV, which is read piece by piece'],
    ],
    ['a.txt', 'x', ['1:1: a mapping file is called *.csv, *.json, *.yaml or *.yml']],
  ])('%s %#', async (name, text, expected) => {
    expect(await read(name, text)).toEqual(expected);
  });

  it('lists a hundred and counts the rest', async () => {
    const problems = await read('a.csv', header + '/a,nobody,1\n'.repeat(500));
    expect(problems).toHaveLength(101);
    expect((problems as string[]).at(-1)).toMatch(/and 400 more problems$/);
  });

  it('a file that is not there', async () => {
    expect(await readMappingFile(join(directory, 'none.csv'), atOnce)).toEqual({
      kind: 'problems',
      problems: [{ line: 1, column: 1, severity: 'error', text: 'cannot be read: ENOENT' }],
    });
  });
});

describe('a file that is being written', () => {
  const row = (id: number) => `/${id},merchants,M${id}\n`;

  it('is waited for, though each of its states is good', async () => {
    const path = join(directory, 'a.csv');
    writeFileSync(path, header + row(0));
    let writes = 0;
    const reading = await readMappingFile(path, async () => {
      writes += 1;
      if (writes <= 3) writeFileSync(path, row(writes), { flag: 'a' });
    });
    expect(reading).toMatchObject({ kind: 'table', data: { rows: 4 } });
    expect(writes).toBe(4);
  });

  it('is given up when it never settles', async () => {
    const path = join(directory, 'a.csv');
    writeFileSync(path, header + row(0));
    let writes = 0;
    const reading = await readMappingFile(path, async () => {
      writes += 1;
      writeFileSync(path, row(writes), { flag: 'a' });
    });
    expect(reading).toMatchObject({ problems: [{ text: 'the file keeps changing' }] });
  });
});

describe('as a source', () => {
  const row = (id: string) => `${header}/en/acer,abstract-products,${id}\n`;
  const acer = targetOf('/en/acer');

  async function start(more = {}) {
    const path = join(directory, 'map.csv');
    writeFileSync(path, row('1'));
    const resolver = new UrlResolver({ mappingFile: { path, pollMs: 10, settleMs: 5 }, ...more });
    expect(await resolver.start()).toEqual([]);
    const idNow = async () => entityOf((await resolve(resolver, acer)).body)[1];
    return { path, resolver, idNow };
  }

  it('answers at once, found or not', async () => {
    const { resolver } = await start();
    const answer = await resolve(resolver, acer);
    expect(answer.field('Cache-Status')).toBe('shopward; hit; detail=mapping-file');
    expect((await resolve(resolver, targetOf('/x'))).rejection).toBe('url-not-found');
    expect(resolver.stats()).toMatchObject({
      fileAnswers: 2,
      entries: 0,
      file: { rows: 1, isLastReloadGood: true },
    });
    await resolver.close();
  });

  it('follows an edit, a rename over it, and a swapped symlink', async () => {
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

  it('keeps the last good table over a bad edit, and says so', async () => {
    const { path, resolver, idNow } = await start();
    writeFileSync(path, 'nonsense\n');
    await until(async () => resolver.stats().file?.isLastReloadGood === false);
    expect(resolver.stats().file?.problems[0]).toMatchObject({ file: path, line: 1, column: 1 });
    expect(await idNow()).toBe('1');
    unlinkSync(path);
    expect(await resolver.reload()).toMatchObject([{ text: 'cannot be read: ENOENT' }]);
    expect(await idNow()).toBe('1');
    writeFileSync(path, row('2'));
    await until(async () => (await idNow()) === '2');
    await resolver.close();
  });

  it('comes first, and the shop is asked for the rest', async () => {
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

  it('gives the problems of a first load', async () => {
    const path = join(directory, 'bad.csv');
    writeFileSync(path, 'x\n');
    const resolver = new UrlResolver({ mappingFile: { path, settleMs: 0 } });
    expect((await resolver.start()).map(({ text }) => text)).toContain('unknown column x');
    await resolver.close();
  });
});
