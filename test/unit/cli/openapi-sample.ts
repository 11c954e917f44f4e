import { resourceId } from '../../../src/access/protected-list.ts';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';
import { runProtectedImport } from '../../../src/cli/protected/import.ts';
import { makeFolder } from '../config/config-folder.ts';
import { runCommand } from './command-run.ts';

/** Components of a document with one scheme, B. */
export const bearer = { components: { securitySchemes: { B: { type: 'http', scheme: 'bearer' } } } };
/** An operation that needs a token. */
export const secured = { security: [{ B: [] }], responses: {} };

export function document(paths: object, more: object = {}) {
  return { openapi: '3.1.0', info: { title: 'Shop', version: '1' }, ...bearer, paths, ...more };
}

export function importOf(source: object | string, options: object = {}) {
  const cwd = makeFolder({ 'api.yaml': typeof source === 'string' ? source : JSON.stringify(source) });
  return runCommand((io) => runProtectedImport('api.yaml', options, io), { cwd });
}

/** The imported rows (group, row, scopes) and notes. */
export async function importedRows(source: object | string, options: object = {}) {
  const { code, out, err } = await importOf(source, options);
  const { list } = parseProtectedList(`${out.join('\n')}\n`, 'list');
  const rows = list?.rows.map((row) => [row.group, resourceId(row), ...row.scopes].join(' | ')) ?? [];
  return { code, rows, notes: err.filter((line) => line.includes(': note: ')) };
}
