import { Document } from 'yaml';
import { type ProtectedResource, resourceId } from '../../access/protected-list.ts';
import { parseProtectedList } from '../../access/protected-list-document.ts';

type NewRow = Pick<ProtectedResource, 'method' | 'template' | 'group' | 'scopes'>;

/**
 * Writes rows as a list file: grouped, `complete: true` last. What it gives was read back by the list's own parser.
 * @throws {Error} when a row is none: a bug of the caller.
 */
export function listText(rows: readonly NewRow[], comment: string): string {
  const groups = new Map<string, unknown[]>();
  const document = new Document({});
  for (const row of rows) {
    const items = groups.get(row.group) ?? [];
    groups.set(row.group, items);
    const text = resourceId(row);
    items.push(
      row.scopes.length === 0
        ? text
        : document.createNode({ match: text, scopes: row.scopes }, { flow: true }),
    );
  }
  document.contents = document.createNode({ groups, complete: true }) as never;
  document.commentBefore = ` yaml-language-server: $schema=./protected-resources.schema.json\n${comment}`;
  const text = document.toString({ lineWidth: 0 });
  const { list, problems } = parseProtectedList(text, 'list');
  if (list?.rows.length !== rows.length) {
    throw new Error(
      `a list of ${rows.length} rows was written that cannot be read: ${problems[0]?.text ?? ''}`,
    );
  }
  return text;
}
