import { hash } from 'node:crypto';
import { readKeyFiles } from '../access/file-key-source.ts';
import { compileProtectedList, type ProtectedResources, resourceId } from '../access/protected-list.ts';
import { parseProtectedList } from '../access/protected-list-document.ts';
import { findSuspicious } from '../access/protected-list-review.ts';
import { compileFilters } from '../app/filter-definition.ts';
import { filterDefinitions } from '../app/filters.ts';
import type { FileValidators } from '../config/named-files.ts';
import type { PartialConfig } from '../config/schema.ts';
import { isRejection } from '../http/rejection.ts';
import type { Problem } from '../lib/problem.ts';
import { namesToken } from '../refresh-tokens/endpoints.ts';
import { loadMappingFile } from '../url-resolver/mapping-file/mapping-file.ts';
import { createAskedReader } from './explain/explain-request.ts';

/** The features' own check of the files that the configuration names. */
export const fileValidators: FileValidators = {
  protectedResources: (text, name) => {
    const { list, problems } = parseProtectedList(text, name);
    const remark = list && remarkOnContractList(list);
    return remark === undefined ? problems : [remark];
  },
  keyFiles: async (paths, algorithms) => (await readKeyFiles(paths, algorithms)).problems,
  mapping: validateMapping,
};

async function validateMapping(
  path: string,
  name: string,
  { urlResolver }: PartialConfig,
): Promise<Problem[]> {
  const loaded = await loadMappingFile({
    path,
    ...(urlResolver && { entityTypes: urlResolver.entityTypes }),
  });
  if (loaded.kind === 'table') return [];
  return loaded.problems.map((problem) => ({ ...problem, file: name }));
}

/** The same, with advice that a start need not repeat: rows that are right but probably not what was meant. */
export const adviceValidators: FileValidators = {
  ...fileValidators,
  protectedResources: (text, name, config) => {
    const { list, problems } = parseProtectedList(text, name);
    if (list === undefined) return problems;
    const remark = remarkOnContractList(list);
    const found = remark === undefined ? [...problems, ...findSuspicious(list, config.request)] : [remark];
    return [...found, ...findVoid(list, config), ...findUnownedRevocations(list, config)];
  },
};

/** Rows that protect nothing: what shopward answers itself needs no token, whatever the list says. */
function findVoid({ rows }: ProtectedResources, config: PartialConfig): Problem[] {
  const endpoints = compileFilters(config, filterDefinitions).filter(
    ({ definition }) => definition.stage === 'endpoint',
  );
  const read = createAskedReader(config);
  return rows.flatMap((row) => {
    const { method, template: path } = row;
    if (method !== 'ANY' && method !== 'GET') return [];
    const request = read({ method: 'GET', target: path, host: 'localhost' });
    if (isRejection(request) || !endpoints.some(({ matcher }) => matcher.match(request) !== undefined))
      return [];
    const text = `${resourceId(row)}: shopward answers GET ${path} itself, and asks for no token`;
    return [{ ...row.source, severity: 'warning', text }];
  });
}

/** Endpoints that end refresh tokens, and have no row: nobody is known to be the user, so that nothing is ended. */
function findUnownedRevocations(list: ProtectedResources, config: PartialConfig): Problem[] {
  const { refreshTokens, request } = config;
  if (!refreshTokens) return [];
  const revocations = refreshTokens.endpoints.filter(
    ({ kind, path }) => kind === 'revoke' && namesToken({ path }),
  );
  if (revocations.length === 0) return [];
  const compiled = compileProtectedList(list, request ?? { ignoredPrefixes: [] });
  const read = createAskedReader(config);
  return revocations.flatMap(({ method, path }) => {
    const target = path.replace(/\{[^{}]*\}|\*\*$/g, 'x');
    const asked = read({ method, target, host: 'localhost' });
    if (isRejection(asked) || compiled.match(asked) !== undefined) return [];
    const text = `refreshTokens: ${method} ${path} revokes nothing, since no row protects it: add the row "${method} ${path}"`;
    return [{ file: list.file, line: 1, column: 1, severity: 'warning', text }];
  });
}

/** One remark where the list is the contract's own, of which each omission is known; undefined: it is another one. */
function remarkOnContractList({ rows, file }: ProtectedResources): Problem | undefined {
  const isPlain = rows.every(({ scopes, observe }) => scopes.length === 0 && !observe);
  const keys = rows.map((row) => `${row.method} ${row.template}`).toSorted();
  if (!isPlain || hash('sha256', keys.join('\n')) !== contractDigest) return undefined;
  const text =
    "the contract's default list: protected-resources.hardened.yaml also names what such a shop protects besides";
  return { file, line: 1, column: 1, severity: 'warning', text };
}

/** SHA-256 of the shipped list's rows, sorted, one a line. */
const contractDigest = '437b8fa7a5e4933d5b42b5da2652162ca9a77b0d1048746e178f3ef6eeca9268';
