import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { contractEntityTypes } from '../../../src/url-resolver/envelope.ts';
import { readMappingFile } from '../../../src/url-resolver/mapping-file/read-mapping-file.ts';
import { MappingTable } from '../../../src/url-resolver/mapping-file/table.ts';
import { makeFolder } from '../../unit/config/config-folder.ts';

const page = readFileSync(path.join(import.meta.dirname, '../../../docs/url-resolver.md'), 'utf8');
const [, example = ''] = /^```csv\n([\s\S]*?)^```$/m.exec(page) ?? [];

async function read(text: string) {
  const folder = makeFolder({ 'urls.csv': text });
  return readMappingFile(path.join(folder, 'urls.csv'), () => Promise.resolve(), contractEntityTypes);
}

it.each([
  ['/en/cups, and plates', 'DE', { entityType: 'category-nodes', entityId: '5' }],
  ['/en/acer-aspire-s7', 'AT', { entityType: 'abstract-products', entityId: '134' }],
])('the example file maps %s in store %j', async (url, store, mapping) => {
  const reading = await read(example);
  if ('problems' in reading) throw new Error(JSON.stringify(reading.problems));
  expect(new MappingTable(reading).find(url, store)).toEqual(mapping);
});

it('the columns on the page exist, and are required if the page says so', async () => {
  const rows = [...page.matchAll(/^\|`(\w+)`\|.*\|(yes|no)\|$/gm)];
  expect(rows.map(([, name]) => name)).toEqual(['url', 'entityType', 'entityId', 'store']);
  const values: Record<string, string> = { url: '/a', entityType: 'merchants', entityId: '1', store: 'DE' };
  for (const [, left, isRequired] of rows) {
    const names = Object.keys(values).filter((name) => name !== left);
    const text = `${names.join(',')}\n${names.map((name) => values[name]).join(',')}\n`;
    expect('problems' in (await read(text)), left).toBe(isRequired === 'yes');
  }
});

it.each([
  ['url,entityType,entityId\n/a,merchants,1', /last line/],
  ['url,entityType,entityId\n/a,merchants,1\n/a,merchants,2\n', /same url and store/],
  ['url,entityType,entityId\n/a,customers,1\n', /entityType must be one of/],
  ['url,entityType,entityId\n /a,merchants,1\n', /spaces around/],
  [`url,entityType,entityId\n/${'a'.repeat(2048)},merchants,1\n`, /longer than 2048 bytes/],
  [`url,entityType,entityId\n/a,merchants,${'1'.repeat(256)}\n`, /longer than 255 bytes/],
])('a file that the page calls wrong is refused: %#', async (text, problem) => {
  const reading = await read(text);
  expect('problems' in reading && reading.problems[0]?.text).toMatch(problem);
});
