import type { ProtectedResources } from '../../../src/access/protected-list.ts';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';

/** The text of a list with these rows, the first one in line 3. */
export const listOf = (...rows: string[]) =>
  `groups:\n  A:\n${rows.map((row) => `    - ${row}\n`).join('')}complete: true\n`;

/** The list of a text; throws if it has an error. */
export function readList(text: string): ProtectedResources {
  const { list, problems } = parseProtectedList(text, 'list.yaml');
  if (list === undefined) throw new Error(JSON.stringify(problems));
  return list;
}
