import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { BenchCase } from '../case.ts';
import { folder, startNode, startShopward } from '../contestants.ts';
import { bearers, get, type Stage } from '../stage.ts';
import { urlOf, writeRows } from '../url-resolver-rows.ts';

const asked = 1000;

/**
 * The cost must not grow with the list or the mappings. A resolved URL is compared with a server that only writes its
 * answer.
 */
export function tableCases(stage: Stage): BenchCase[] {
  const withRows = async (count: number) => {
    const others = Array.from({ length: count - 1 }, (_, i) => `GET /things-${i}/{id}/parts/{part_id}`);
    const rows = [...others, 'GET /orders/{id}'];
    return startShopward(`${count.toLocaleString('en')} rows`, stage.upstream, { rows });
  };
  const withMappings = async (count: number) => {
    const file = path.join(folder, `${count}.csv`);
    await writeRows(file, count);
    const more = `urlResolver: { source: '${file}' }\n`;
    return startShopward(`${count.toLocaleString('en')} mappings`, stage.upstream, { more });
  };
  return [
    {
      name: 'protected GET under a long list',
      targets: [{ row: '10,000 rows', against: '56 rows', of: 'cpu', most: 1.03 }],
      async prepare() {
        const request = { ...get('/orders/1'), authorizations: await bearers(1) };
        const contestants = [await withRows(56), await withRows(10_000)];
        return { entries: contestants.map((contestant) => ({ contestant, request })) };
      },
    },
    {
      name: 'resolved URL',
      targets: [
        { row: '1,000 mappings', against: 'bare node:http answer', of: 'cpu', most: 1.3 },
        { row: '1,000,000 mappings', against: '1,000 mappings', of: 'cpu', most: 1.05 },
      ],
      async prepare() {
        const few = await withMappings(1000);
        const many = await withMappings(1_000_000);
        const paths = Array.from(
          { length: asked },
          (_, i) => `/url-resolver?url=${encodeURIComponent(urlOf(i))}`,
        );
        const request = { ...get('/', { 'Accept-Language': 'en' }), paths };
        const sample = path.join(folder, 'answer.json');
        writeFileSync(sample, JSON.stringify(await answerOf(few.url + paths[0])));
        const bare = await startNode('bare node:http answer', 'bare-answer.ts', [sample]);
        return { entries: [bare, few, many].map((contestant) => ({ contestant, request })) };
      },
    },
  ];
}

/** The answer as its contestant writes it, without the fields that Node adds. */
async function answerOf(url: string) {
  const answer = await fetch(url, {
    headers: { Accept: 'application/vnd.api+json', 'Accept-Language': 'en' },
  });
  if (!answer.ok) throw new Error(`bench: ${url} is ${answer.status}`);
  const added = new Set(['connection', 'keep-alive', 'date']);
  const fields = [...answer.headers].filter(([name]) => !added.has(name)).flat();
  return { status: answer.status, fields, body: await answer.text() };
}
