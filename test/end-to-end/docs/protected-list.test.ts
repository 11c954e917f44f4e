import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';
import type { Explanation } from '../../../src/cli/explain/explanation.ts';
import { runExplain } from '../../../src/cli/explain.ts';
import { runCommand } from '../../unit/cli/command-run.ts';
import { keys, makeFolder } from '../../unit/config/config-folder.ts';

/** Parses the list of the page, and explains each request of the page with it. */
const page = readFileSync(path.join(import.meta.dirname, '../../../docs/protected-list.md'), 'utf8');
const list = /^```yaml\n([\s\S]*?)^```$/m.exec(page)?.[1] ?? '';
const section = (title: string) =>
  new RegExp(`^## ${title}\\n([\\s\\S]*?)(?=^## |(?![\\s\\S]))`, 'm').exec(page)?.[1] ?? '';

const requests = [...section('What a request matches').matchAll(/^\|`([^`]+)`\|(.+)\|(.+)\|$/gm)].map(
  ([, request = '', decides = '', needs = '']) => ({ request, decides, needs }),
);

it('the list of the page is valid and has 7 rows; its table has 13 requests', () => {
  const { list: read, problems } = parseProtectedList(list, 'list.yaml');
  expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
  expect(read?.rows).toHaveLength(7);
  expect(requests).toHaveLength(13);
});

async function explain(request: string): Promise<Explanation> {
  const cwd = makeFolder({
    'config/shopward.yaml': `${keys}\nentityTags: false\n`,
    'config/protected-resources.yaml': list,
  });
  const { out } = await runCommand((io) => runExplain([request], { header: [], json: true }, io), { cwd });
  return JSON.parse(out.join('\n')) as Explanation;
}

it.each(requests)('$request: $decides decides, it needs $needs', async ({ request, decides, needs }) => {
  const { rows, token } = await explain(request);
  const deciding = rows.find((row) => row.decides)?.row;
  expect(deciding === undefined ? '-' : `\`${deciding}\``).toBe(decides);
  expect(needOf(token)).toBe(needs);
});

function needOf(token: Explanation['token']): string {
  if (token === null || !token.needed) return 'nothing';
  if (token.observed) return 'nothing yet: it is observed';
  const scopes = token.scopes.map((scope) => `\`${scope}\``).join(', ');
  return scopes === '' ? 'a token' : `a token with ${scopes}`;
}
