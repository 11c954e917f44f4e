import { loadConfig } from '../config/load.ts';
import { formatProblem } from '../config/problem.ts';
import type { Config } from '../config/schema.ts';
import { compileProtectedList, parseProtectedList, type Requirement } from '../protection/protected-list.ts';
import { resourceId } from '../protection/protected-resource.ts';
import { isRejection } from '../rejections/rejection.ts';
import { buildRejections } from '../rejections/table.ts';
import { canonicaliseRequest } from '../request/canonicalise-request.ts';
import { buildRequestRules } from '../request/request-rules.ts';
import { type CommandIo, processIo } from './command-io.ts';
import { fileJudges } from './file-judges.ts';

export interface ExplainOptions {
  readonly config?: string;
  readonly json?: boolean;
}

/** What would happen to a request, step by step. */
export interface Explanation {
  readonly method: string;
  readonly canonicalPath?: string;
  /** The refusal that its form alone meets. */
  readonly refused?: { readonly rejection: string; readonly status: number; readonly reason?: string };
  /** `ownEndpoint`: answered by shopward; `protected` and `open`: forwarded. */
  readonly verdict: 'refused' | 'own-endpoint' | 'protected' | 'open';
  readonly rows: readonly { readonly row: string; readonly at: string; readonly scopes: readonly string[] }[];
  readonly tokenNeeded: boolean;
  readonly entityTags: string;
  readonly text: readonly string[];
}

/** Prints, offline, what would happen to a request. Exit code 0, or 78 for a configuration with problems. */
export async function runExplain(
  method: string,
  url: string,
  options: ExplainOptions,
  io: CommandIo = processIo,
): Promise<number> {
  const loaded = await loadConfig({ file: options.config, env: io.env, cwd: io.cwd, judges: fileJudges });
  if ('problems' in loaded) {
    for (const problem of loaded.problems) io.err(formatProblem(problem));
    return 78;
  }
  const file = loaded.files.find(({ role }) => role === 'protected-resources');
  const explanation = explain(method.toUpperCase(), url, loaded.config, file?.text ?? '', file?.name ?? '');
  io.out(options.json ? JSON.stringify(explanation, null, 2) : explanation.text.join('\n'));
  return 0;
}

/** Pure: the same canonical request, list and table as the proxy's own. */
export function explain(
  method: string,
  url: string,
  config: Config,
  listText: string,
  listFile: string,
): Explanation {
  const { target, host } = splitUrl(url);
  const rules = buildRequestRules({
    upstreamHost: 'upstream',
    encodedSlash: config.request.encodedSlash,
    requestBodyBytes: config.limits.requestBody,
  });
  const head = { method, url: target, rawHeaders: ['Host', host], httpVersionMajor: 1, httpVersionMinor: 1 };
  const request = canonicaliseRequest(head, { address: '127.0.0.1', isTls: false, isTrusted: false }, rules);
  const nothing = { method, rows: [], tokenNeeded: false, entityTags: 'none' };
  if (isRejection(request)) {
    const { status, code, detail } = buildRejections(config.rejections)[request.rejection];
    const reason = request.reason === undefined ? '' : ` (${request.reason})`;
    return {
      ...nothing,
      verdict: 'refused',
      refused: { rejection: request.rejection, status, ...(request.reason && { reason: request.reason }) },
      text: [
        `${method} ${target}`,
        `refused: ${status} code ${code} ${detail}${reason}`,
        'the upstream is not asked',
      ],
    };
  }
  const { list } = parseProtectedList(listText, listFile);
  const requirement = list && compileProtectedList(list, config.request).match(request);
  const isResolver =
    config.urlResolver && request.path === config.urlResolver.path && (method === 'GET' || method === 'HEAD');
  const text = [`${method} ${request.path}${request.query}`, `canonical path: ${request.path}`];
  if (isResolver) {
    text.push('answered by the URL resolver; needs no token');
    return { ...nothing, canonicalPath: request.path, verdict: 'own-endpoint', text };
  }
  const rows = (requirement?.rows ?? []).map((row) => ({
    row: resourceId(row),
    at: `${row.source.file}:${row.source.line}`,
    scopes: row.scopes,
  }));
  text.push(...describe(requirement), ...rows.map(({ row, at }) => `  row: ${row} (${at})`));
  if (requirement?.observe || config.mode === 'observe') text.push('observe mode: a refusal is only counted');
  text.push(`forwarded to ${config.upstream.url} as ${method} ${request.path}${request.query}`);
  return {
    method,
    canonicalPath: request.path,
    verdict: requirement ? 'protected' : 'open',
    rows,
    tokenNeeded: requirement !== undefined,
    entityTags: 'none',
    text,
  };
}

function describe(requirement: Requirement | undefined): string[] {
  if (requirement === undefined) return ['open: no row of the protected list is met, no token is needed'];
  const scopes = requirement.scopes.length > 0 ? ` with the scopes ${requirement.scopes.join(', ')}` : '';
  return [`protected: needs a valid access token${scopes}`];
}

/** Takes what people paste from a log: a path, or a whole URL whose origin and fragment do not count. */
function splitUrl(url: string): { target: string; host: string } {
  const match = /^https?:\/\/([^/?#]+)([^#]*)/i.exec(url);
  if (match === null) return { target: url, host: 'localhost' };
  const rest = match[2] ?? '';
  return { target: rest.startsWith('/') ? rest : `/${rest}`, host: match[1] ?? 'localhost' };
}
