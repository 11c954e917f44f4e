import {
  compileProtectedList,
  type ProtectedList,
  type ProtectedResources,
  resourceId,
} from '../access/protected-list.ts';
import { parseProtectedList } from '../access/protected-list-document.ts';
import { findSuspicious } from '../access/protected-list-review.ts';
import { compileFilters } from '../app/filter-definition.ts';
import { filterDefinitions } from '../app/filters.ts';
import type { FileValidators } from '../config/named-files.ts';
import type { PartialConfig } from '../config/schema.ts';
import type { PathRules } from '../http/path-table.ts';
import { isRejection } from '../http/rejection.ts';
import type { Problem } from '../lib/problem.ts';
import { namesToken } from '../refresh-tokens/endpoints.ts';
import { createAskedReader } from './explain/explain-request.ts';
import { fileValidators, remarkOnContractList } from './file-validators.ts';

/** The check of a start, with advice that it need not repeat: rows that are right but probably not what was meant. */
export const adviceValidators: FileValidators = {
  ...fileValidators,
  protectedResources: (text, name, config) => {
    const { list, problems } = parseProtectedList(text, name);
    if (list === undefined) return problems;
    const remark = remarkOnContractList(list);
    const compiler = new ListCompiler(list, config.request);
    const found =
      remark === undefined ? [...problems, ...findSuspicious(compiler.withoutPrefixes())] : [remark];
    return [...found, ...findVoid(list, config), ...findUnownedRevocations(list, config, compiler)];
  },
};

/** Compiles a list when somebody first asks for it, and once where no prefix is ignored: with many rows it is the dearest step. */
class ListCompiler {
  readonly #list: ProtectedResources;
  readonly #rules: PathRules;
  #whole: ProtectedList | undefined;
  #withoutPrefixes: ProtectedList | undefined;

  constructor(list: ProtectedResources, rules: PathRules = { ignoredPrefixes: [] }) {
    this.#list = list;
    this.#rules = rules;
  }

  /** As requests are matched. */
  whole(): ProtectedList {
    if (this.#rules.ignoredPrefixes.length === 0) return this.withoutPrefixes();
    this.#whole ??= compileProtectedList(this.#list, this.#rules);
    return this.#whole;
  }

  /** As templates are matched, in front of which no prefix stands. */
  withoutPrefixes(): ProtectedList {
    this.#withoutPrefixes ??= compileProtectedList(this.#list, { ...this.#rules, ignoredPrefixes: [] });
    return this.#withoutPrefixes;
  }
}

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
function findUnownedRevocations(
  list: ProtectedResources,
  config: PartialConfig,
  compiler: ListCompiler,
): Problem[] {
  const { refreshTokens } = config;
  if (!refreshTokens) return [];
  const revocations = refreshTokens.endpoints.filter(
    ({ kind, path }) => kind === 'revoke' && namesToken({ path }),
  );
  if (revocations.length === 0) return [];
  const compiled = compiler.whole();
  const read = createAskedReader(config);
  return revocations.flatMap(({ method, path }) => {
    const target = path.replace(/\{[^{}]*\}|\*\*$/g, 'x');
    const asked = read({ method, target, host: 'localhost' });
    if (isRejection(asked) || compiled.match(asked) !== undefined) return [];
    const text = `refreshTokens: ${method} ${path} revokes nothing, since no row protects it: add the row "${method} ${path}"`;
    return [{ file: list.file, line: 1, column: 1, severity: 'warning', text }];
  });
}
