import { compileProtectedList } from '../access/packed-list.ts';
import {
  type ProtectedList,
  type ProtectedResources,
  readsParameters,
  resourceId,
} from '../access/protected-list.ts';
import { parseProtectedList } from '../access/protected-list-document.ts';
import { findSuspicious } from '../access/protected-list-review.ts';
import { compileFilters } from '../app/filter-definition.ts';
import { filterDefinitions } from '../app/filters.ts';
import type { FileValidators } from '../config/named-files.ts';
import type { PartialConfig } from '../config/schema.ts';
import { isRejection } from '../http/rejection.ts';
import type { Problem } from '../lib/problem.ts';
import { namesToken } from '../refresh-tokens/endpoints.ts';
import { createAskedReader } from './explain/explain-request.ts';
import { fileValidators, remarkOnContractList } from './file-validators.ts';

/** The validators of a start, and advice about valid rows that are probably a mistake. */
export const adviceValidators: FileValidators = {
  ...fileValidators,
  protectedResources: (text, name, config) => {
    const { list, problems } = parseProtectedList(text, name);
    if (list === undefined) return problems;
    const remark = remarkOnContractList(list);
    // Compile once: with many rows this is the slowest step.
    const compiled = compileProtectedList(list, config.request ?? { ignoredPrefixes: [] });
    const found = remark === undefined ? [...problems, ...findSuspicious(compiled)] : [remark];
    return [
      ...found,
      ...findVoid(list, config),
      ...findDoubtfulConditions(list, config),
      ...findUnprovable(list, config),
      ...findUnprotected(list, config, compiled),
    ];
  },
};

/** Conditions that are probably a mistake. Two issuers may use one name for two people. */
function findDoubtfulConditions({ rows }: ProtectedResources, { auth }: PartialConfig): Problem[] {
  const hasIssuers = (auth?.issuers?.length ?? 0) > 1;
  return rows.flatMap(({ source, require = [], ...row }) => {
    const texts = require.flatMap(({ name, values = [] }) => {
      const value = values.find((one) => typeof one === 'string' && claimLike.test(one));
      return value ? [`has no parameter {${name}}: the claim ${name} must be the text "${value}"`] : [];
    });
    if (hasIssuers && readsParameters({ require }) && !require.some(({ claim }) => claim.join() === 'iss'))
      texts.push('accepts the claim from each of auth.issuers: add iss: [ISSUER] to require');
    return texts.map((text) => ({ ...source, severity: 'warning', text: `${resourceId(row)} ${text}` }));
  });
}

const claimLike = /^(?:sub|iss|aud|azp|client_id)(?:\.|$)/;

/** Rows that refuse every token. */
function findUnprovable({ rows }: ProtectedResources, { auth }: PartialConfig): Problem[] {
  if (auth?.proof !== 'none') return [];
  return rows
    .filter(({ proof }) => proof !== undefined)
    .map((row) => ({
      ...row.source,
      severity: 'warning',
      text: `${resourceId(row)} refuses every token: proof: required needs auth.proof`,
    }));
}

/** Rows without effect, since shopward answers their path itself, without a token. */
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

/** Settings whose requests are refused or have no effect because no row asks for a token. */
function findUnprotected(
  list: ProtectedResources,
  config: PartialConfig,
  compiled: ProtectedList,
): Problem[] {
  const endpoints = config.refreshTokens ? config.refreshTokens.endpoints : [];
  const resources = config.entityTags ? config.entityTags.resources : [];
  const read = createAskedReader(config);
  const needed = [
    ...endpoints
      .filter((one) => one.kind === 'revoke' && namesToken(one))
      .map(({ method, path }) => ({
        method,
        path,
        text: `refreshTokens: ${method} ${path} revokes nothing`,
      })),
    ...resources.flatMap(({ collection: path, methods, batch }) =>
      (batch === 'guarded' ? [...new Set(['POST', ...methods] as const)] : []).map((method) => ({
        ...{ method, path, text: `entityTags.resources: ${method} ${path} is refused (batch: guarded)` },
      })),
    ),
  ];
  return needed.flatMap(({ method, path, text }) => {
    const target = path.replace(/\{[^{}]*\}|\*\*$/g, 'x');
    const asked = read({ method, target, host: 'localhost' });
    if (isRejection(asked) || compiled.match(asked) !== undefined) return [];
    const advice = `${text}, since no row protects it: add the row "${method} ${path}"`;
    return [{ file: list.file, line: 1, column: 1, severity: 'warning', text: advice }];
  });
}
