import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { readMappingFile } from '../../src/url-resolver/mapping-file/read-mapping-file.ts';
import { MappingTable } from '../../src/url-resolver/mapping-file/table.ts';
import { makeFolder } from '../config/config-folder.ts';

const page = readFileSync(path.join(import.meta.dirname, '../../docs/mapping-file.md'), 'utf8');
const exampleOf = (form: string) =>
  new RegExp(`^\`\`\`${form}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(page)?.[1] ?? '';

async function read(form: string, text = exampleOf(form)) {
  const folder = makeFolder({ [`urls.${form}`]: text });
  return readMappingFile(path.join(folder, `urls.${form}`), () => Promise.resolve());
}

it.each([
  ['csv', '/en/cups, and plates', 'DE', { entityType: 'category-nodes', entityId: '5' }],
  ['csv', '/en/acer-aspire-s7', 'AT', { entityType: 'abstract-products', entityId: '134' }],
  ['yaml', '/en/merchant/spryker', 'DE', { entityType: 'merchants', entityId: 'MER000001' }],
  ['yaml', '/en/merchant/spryker', 'AT', undefined],
  ['json', '/en/computer', '', { entityType: 'category-nodes', entityId: '5' }],
])('the example in %s is read: %s in store %j', async (form, url, store, mapping) => {
  const reading = await read(form);
  if (reading.kind !== 'table') throw new Error(JSON.stringify(reading.problems));
  expect(new MappingTable(reading.data).find(url, store)).toEqual(mapping);
});

it('every column of the page is one, and the required ones are', async () => {
  const rows = [...page.matchAll(/^\| `(\w+)` \|.*\| (yes|no) \|$/gm)];
  expect(rows.map(([, name]) => name)).toEqual(['url', 'entityType', 'entityId', 'store']);
  const values: Record<string, string> = { url: '/a', entityType: 'merchants', entityId: '1', store: 'DE' };
  for (const [, left, isRequired] of rows) {
    const names = Object.keys(values).filter((name) => name !== left);
    const text = `${names.join(',')}\n${names.map((name) => values[name]).join(',')}\n`;
    expect((await read('csv', text)).kind, left).toBe(isRequired === 'yes' ? 'problems' : 'table');
  }
});

it.each([
  ['csv', 'url,entityType,entityId\n/a,merchants,1', /last line/],
  ['csv', 'url,entityType,entityId\n/a,merchants,1\n/a,merchants,2\n', /same url and store/],
  ['csv', 'url,entityType,entityId\n/a,customers,1\n', /entityType must be one of/],
  ['csv', 'url,entityType,entityId\n /a,merchants,1\n', /spaces around/],
  ['csv', `url,entityType,entityId\n/${'a'.repeat(2048)},merchants,1\n`, /longer than 2048 bytes/],
  ['csv', `url,entityType,entityId\n/a,merchants,${'1'.repeat(256)}\n`, /longer than 255 bytes/],
  ['json', '[{"url":"/a","entityType":"merchants","entityId":1}]', /must be a string/],
])('what the page says is refused: %s %#', async (form, text, problem) => {
  const reading = await read(form, text);
  expect(reading.kind === 'problems' && reading.problems[0]?.text).toMatch(problem);
});
