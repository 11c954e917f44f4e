import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { contractEntityTypes as entityTypes } from '../../../src/url-resolver/envelope.ts';
import { readCsv, readMappingFile } from '../../../src/url-resolver/mapping-file/read-mapping-file.ts';
import { MappingTable } from '../../../src/url-resolver/mapping-file/table.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'shopward-mapping-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const atOnce = async () => {};

/** Reads a file with this text. Returns a table, or problems as `line:column: text`. */
async function read(text: string | Buffer): Promise<MappingTable | string[]> {
  const path = join(directory, 'a.csv');
  writeFileSync(path, text);
  const reading = await readMappingFile(path, atOnce, entityTypes);
  if (!('problems' in reading)) return new MappingTable(reading);
  return reading.problems.map(({ line, column, text: problem }) => `${line}:${column}: ${problem}`);
}

async function readTable(text: string | Buffer): Promise<MappingTable> {
  const table = await read(text);
  if (Array.isArray(table)) throw new Error(table.join('\n'));
  return table;
}

const header = 'url,entityType,entityId\n';
const withStore = 'url,entityType,entityId,store\n';
const type = 'entityType must be one of abstract-products, category-nodes, cms-pages, merchants';

describe('good files', () => {
  it.each([
    [`${header}/en/acer,abstract-products,134\n/de/bücher,category-nodes,7\n`],
    [
      `\ufeffentityId,url,entityType\r\n134,/en/acer,abstract-products\r\n\r\n7,/de/bücher,category-nodes\r\n`,
    ],
    [`"url","entityType","entityId"\n"/en/acer",abstract-products,"134"\n/de/bücher,"category-nodes",7\n`],
    [`${withStore}/en/acer,abstract-products,134,\n/de/bücher,category-nodes,7,\n`],
  ])('%j', async (text) => {
    const table = await readTable(text);
    expect(table.rows).toBe(2);
    expect(table.find('/en/acer', '')).toEqual({ entityType: 'abstract-products', entityId: '134' });
    expect(table.find('/de/bücher', 'any')).toEqual({ entityType: 'category-nodes', entityId: '7' });
    for (const url of ['/en/ace', '/en/acer/', '/EN/ACER', '', '/', 'ü'.repeat(1024)]) {
      expect(table.find(url, '')).toBeUndefined();
    }
  });

  it('a row of a store wins in its store and is not found in others', async () => {
    const table = await readTable(`${withStore}/a,merchants,M1,\n/a,merchants,M2,DE\n/b,merchants,M3,AT\n`);
    const idsIn = (each: MappingTable, url: string) =>
      ['', 'DE', 'AT', 'XX'].map((store) => each.find(url, store)?.entityId ?? 'none').join(' ');
    expect([idsIn(table, '/a'), idsIn(table, '/b')]).toEqual(['M1 M2 M1 M1', 'none none M3 none']);
    expect(table.find('T/b', 'A')).toBeUndefined();
    const storeFirst = await readTable('store,url,entityType,entityId\nDE,/a,merchants,M1\n');
    expect(idsIn(storeFirst, '/a')).toBe('none M1 none none');
  });

  it('random rows with quotes and commas, read in chunks of any size', async () => {
    const id = fc.stringMatching(/^[\w"',-]{1,12}$/);
    const url = fc.stringMatching(/^\/[\w"',&ü/-]{0,30}$/);
    const quoted = (text: string) => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.tuple(url, fc.constantFrom(...entityTypes), id), {
          selector: ([one]) => one,
          minLength: 1,
        }),
        fc.integer({ min: 1, max: 40 }),
        async (rows, part) => {
          const bytes = Buffer.from(header + rows.map((row) => `${row.map(quoted).join(',')}\n`).join(''));
          const parts = async function* () {
            for (let at = 0; at < bytes.length; at += part) yield bytes.subarray(at, at + part);
          };
          const reading = await readCsv(parts(), entityTypes);
          if ('problems' in reading) throw new Error(JSON.stringify(reading));
          const table = new MappingTable(reading);
          for (const [one, entityType, entityId] of rows) {
            expect(table.find(one, '')).toEqual({ entityType, entityId });
          }
        },
      ),
    );
  });
});

describe('problems, all together, with line and column', () => {
  const halfWritten =
    'the last line has no line break: the file may be only half written; add one if it is whole';
  const oddQuote = 'text after a closing quote, or a quote inside a field that is not quoted';
  it.each<[string | Buffer, string[]]>([
    ['', ['1:1: the header is missing: url,entityType,entityId[,store]']],
    [header, ['1:1: no row']],
    ['url,entityType\n/a,merchants\n', ['1:1: column entityId is missing']],
    ['url,entityType,entityId,locale\n', ['1:25: unknown column locale']],
    ['url,url,entityType,entityId\n', ['1:5: column url twice']],
    [
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
      `${header}/a,merchants,M1\n/b,merchants,M1\n/a,merchants,M2\n`,
      ['4:1: the same url and store as in line 2'],
    ],
    [
      `${header}"/a""b",unknown-type,1\n"/x\ny",merchants,1\n/c,unknown-type,1\n`,
      [`2:9: ${type}`, '3:1: url has a control character', `5:4: ${type}`],
    ],
    [`${header}"/a"b,merchants,1\n/"a,merchants",1\n`, [`2:1: ${oddQuote}`, `3:1: ${oddQuote}`]],
    [`${header}/a,merchants,1\n/b,merch`, ['3:1: 3 columns expected, 2 found', `3:1: ${halfWritten}`]],
    [Buffer.from(`${header}/a,merchants,1\n/\xff,merchants,1\n`, 'latin1'), ['3:1: url is not UTF-8']],
    [
      `${header}"/a,merchants,1\n${'x,y,z\n'.repeat(20_000)}`,
      ['2:1: the record is longer than 64 KiB: a quote that is never closed?'],
    ],
    [`${header}"${'x'.repeat(65_535)}`, ['2:1: a quote is not closed', `2:1: ${halfWritten}`]],
  ])('%#', async (text, expected) => {
    expect(await read(text)).toEqual(expected);
  });

  it.each([
    [100, `101:4: ${type}`],
    [101, '101:4: and 1 more problems'],
    [500, '101:4: and 400 more problems'],
  ])('%i problems: a hundred are listed, the rest is counted', async (count, last) => {
    const problems = await read(header + '/a,unknown-type,1\n'.repeat(count));
    expect(problems).toHaveLength(Math.min(count, 101));
    expect((problems as string[]).at(-1)).toBe(last);
  });

  it('a missing file', async () => {
    expect(await readMappingFile(join(directory, 'none.csv'), atOnce, entityTypes)).toEqual({
      problems: [{ line: 1, column: 1, severity: 'error', text: 'there is no such file' }],
    });
  });
});

describe('the fields of a row', () => {
  const write = ([url, id, store]: readonly string[]) => `${withStore}${url},merchants,${id},${store}\n`;
  const told = async (row: readonly string[]) => {
    const problems = await read(write(row));
    return Array.isArray(problems) ? problems.map((problem) => problem.replace(/^\d+:\d+: /, '')) : [];
  };

  it.each([
    [['/a', 'M1', 'DE'], []],
    [['/a', 'M1', ''], []],
    [['x', '1', '!'], []],
    [['', 'M1', 'DE'], ['url is empty']],
    [['/a', '', 'DE'], ['entityId is empty']],
    [['/a b', 'M 1', 'D E'], []],
    [[' /a', 'M1', 'DE'], ['url has spaces around it']],
    [['/a', 'M1 ', 'DE'], ['entityId has spaces around it']],
    [['/a', 'M1', ' '], ['store has spaces around it']],
    [['/a\u001f', 'M1', 'DE'], ['url has a control character']],
    [['/a', '\u0001', 'DE'], ['entityId has a control character']],
    [['/a', 'M1', '\u007f'], ['store has a control character']],
    [['/a\u0080~', 'M1', 'DE'], []],
  ])('%j: %j', async (row, problems) => {
    expect(await told(row)).toEqual(problems);
  });

  it('at most 2048 bytes in a URL, 255 in an id, 255 in a store', async () => {
    const ofBytes = (bytes: number) => (bytes % 2 === 0 ? '' : 'x') + 'ü'.repeat(Math.floor(bytes / 2));
    const row = [ofBytes(2048), ofBytes(255), ofBytes(255)] as const;
    const table = await readTable(write(row));
    expect(table.find(row[0], row[2])).toEqual({ entityType: 'merchants', entityId: row[1] });
    expect(await told([ofBytes(2049), row[1], row[2]])).toEqual(['url is longer than 2048 bytes']);
    expect(await told([row[0], ofBytes(256), row[2]])).toEqual(['entityId is longer than 255 bytes']);
    expect(await told([row[0], row[1], ofBytes(256)])).toEqual(['store is longer than 255 bytes']);
  });
});

it('3000 rows: each is found, and a duplicate is reported with the line of the first', async () => {
  const line = (i: number) => `/${'x'.repeat(i % 90)}${i},cms-pages,${i},${i % 3 === 0 ? 'DE' : ''}\n`;
  const text = `${withStore}${Array.from({ length: 3000 }, (_, i) => line(i)).join('')}`;
  const table = await readTable(text);
  for (let i = 0; i < 3000; i += 1) {
    const url = `/${'x'.repeat(i % 90)}${i}`;
    expect(table.find(url, 'DE')?.entityId).toBe(String(i));
    expect(table.find(url, '')?.entityId).toBe(i % 3 === 0 ? undefined : String(i));
    expect(table.find(url, 'D'.repeat(256))?.entityId).toBe(i % 3 === 0 ? undefined : String(i));
  }
  expect(await read(text + line(2500))).toEqual(['3002:1: the same url and store as in line 2502']);
});

it.each([
  ['is read after its last change, although each state before is valid', 3, { rows: 4 }, 4],
  ['is a problem if it changes 20 times', 99, { problems: [{ text: 'it keeps changing' }] }, 20],
])('a file that is being written %s', async (_, changes, expected, looks) => {
  const file = join(directory, 'a.csv');
  const row = (id: number) => `/${id},merchants,M${id}\n`;
  writeFileSync(file, header + row(0));
  let looked = 0;
  const change = async () => {
    looked += 1;
    if (looked <= changes) writeFileSync(file, row(looked), { flag: 'a' });
  };
  expect(await readMappingFile(file, change, entityTypes)).toMatchObject(expected);
  expect(looked).toBe(looks);
});
