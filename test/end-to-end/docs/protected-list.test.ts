import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';
import type { Explanation } from '../../../src/cli/explain/explanation.ts';
import { runExplain } from '../../../src/cli/explain.ts';
import { runCommand } from '../../unit/cli/command-run.ts';
import { keys, makeFolder } from '../../unit/config/config-folder.ts';

/** The page's list is read, each request of the page is explained with it, and each of its mistakes is made. */
const page = readFileSync(path.join(import.meta.dirname, '../../../docs/protected-list.md'), 'utf8');
const list = /^```yaml\n([\s\S]*?)^```$/m.exec(page)?.[1] ?? '';
const section = (title: string) =>
  new RegExp(`^## ${title}\\n([\\s\\S]*?)(?=^## |(?![\\s\\S]))`, 'm').exec(page)?.[1] ?? '';

const requests = [...section('What a request matches').matchAll(/^\|`([^`]+)`\|(.+)\|(.+)\|$/gm)].map(
  ([, request = '', decides = '', needs = '']) => ({ request, decides, needs }),
);
const mistakes = [...section('What is refused').matchAll(/^\|`([^`]+)`( twice)?\|(.+)\|$/gm)].map(
  ([, row = '', twice, message = '']) => ({ rows: twice === undefined ? [row] : [row, row], message }),
);

it('its list has no mistake, and every key that the page explains', () => {
  const { list: read, problems } = parseProtectedList(list, 'list.yaml');
  expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
  expect(read?.rows).toHaveLength(7);
  expect([requests.length, mistakes.length]).toEqual([13, 5]);
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

describe('a mistake', () => {
  it.each(mistakes)('$rows', ({ rows, message }) => {
    const text = `groups:\n  A:\n${rows.map((row) => `    - ${row}\n`).join('')}complete: true\n`;
    const said = parseProtectedList(text, 'list.yaml').problems.map((problem) => problem.text);
    // The page leaves out the signs of a path, which would need escapes in a table.
    const wanted = message.replace(/ A-Z a-z 0-9 and some signs$/, ' A-Z a-z 0-9');
    expect(said.some((one) => one.startsWith(wanted))).toBe(true);
  });
});
