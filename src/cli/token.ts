import { isCompactToken } from '../access/bearer-credentials.ts';
import type { Claims } from '../access/claim-paths.ts';
import { compileProtectedList } from '../access/packed-list.ts';
import { type InspectToken, inspectToken, type TokenInspection } from '../access/token-inspection.ts';
import { createIssuers } from '../app/issuers.ts';
import type { Config } from '../config/schema.ts';
import { trimOws } from '../http/field-list.ts';
import { isRejection } from '../http/rejection.ts';
import type { ComponentLog } from '../lib/component.ts';
import { parseJsonObject } from '../lib/json.ts';
import { reasonLink } from '../rollout/reasons.ts';
import {
  badConfiguration,
  badUsage,
  type CommandIo,
  type CommonChoice,
  processIo,
  readInput,
} from './command-io.ts';
import { explainRequest } from './explain/explain-request.ts';
import { inspectionText } from './explain/explanation-text.ts';
import { loadConfiguration } from './load-configuration.ts';

/** EX_UNAVAILABLE of sysexits.h. */
const keysAway = 69;
/** Bytes of the longest input: a token of 16 KiB, and text around it. */
const maxInput = 65_536;

/**
 * Runs `use` with the keys and introspection of the configuration, then closes them. Without keys the verdict is
 * `keys-unavailable`.
 */
export function withTokenInspector<T>(
  config: IssuersConfig,
  use: (inspect: InspectToken) => Promise<T>,
): Promise<T> {
  return withIssuers(config, (issuers) =>
    use((token, scopes) => inspectToken(token, issuers, scopes, config.auth.forward)),
  );
}

type IssuersConfig = Pick<Config, 'auth' | 'limits'>;

/** Runs `use` after the first attempt to load the keys. */
export async function withIssuers<T>(
  config: IssuersConfig,
  use: (issuers: ReturnType<typeof createIssuers>['issuers']) => T | Promise<T>,
): Promise<T> {
  const { issuers, components } = createIssuers(config, noLog);
  try {
    for (const component of components) await component.start?.();
    return await use(issuers);
  } finally {
    for (const { signed } of issuers.all) signed?.close();
    for (const component of components) void component.close?.();
  }
}

/** Keys log nothing here: everything is reported by the inspection. */
const noLog: ComponentLog = { info() {}, warn() {}, error() {}, debug() {} };

interface TokenChoice extends CommonChoice {
  /** A path, or a method and a path: the token needs the scopes of the rows that match. */
  readonly path?: string;
  readonly claims?: boolean;
}

/**
 * Says whether the proxy accepts a token, and why. `given`: the token; `-` or undefined: standard input. Exit code 0 if it
 * is accepted, 1 if it is refused, 2 without a token or on bad usage, 69 if no keys can be loaded, 78 for a configuration
 * with problems.
 */
export async function runToken(
  given: string | undefined,
  options: TokenChoice,
  io: CommandIo = processIo,
): Promise<number> {
  const isPiped = given === undefined || given === '-';
  const token = readToken(isPiped ? await readInput(io, maxInput) : given);
  if (token === '') {
    io.err('give a token, best on standard input: shopward token < FILE');
    return badUsage;
  }
  if (!isPiped)
    io.err(
      'note: a token among the arguments stays in the history of the shell; - reads it from standard input',
    );
  const loaded = await loadConfiguration(options.config, io);
  if (loaded === undefined) return badConfiguration;
  const { config, list } = loaded;
  const [target = '', method = 'GET'] = (options.path ?? '').split(' ').reverse();
  const asked = { method, target, host: 'localhost' };
  const compile = () => compileProtectedList(list, config.request);
  const rows = target === '' ? undefined : explainRequest(asked, config, compile());
  if (rows?.verdict === 'refused') {
    io.err(`--path: ${rows.refusal?.detail}`);
    return badUsage;
  }
  const inspection = await withTokenInspector(config, (inspect) => inspect(token, rows?.token));
  const claims = options.claims ? claimsOf(token) : undefined;
  if (options.json) io.out(JSON.stringify({ ...jsonOf(inspection), ...(claims && { claims }) }, null, 2));
  else {
    for (const line of inspectionText(inspection)) io.out(line);
    if (claims) io.out(JSON.stringify(claims, null, 2));
  }
  const { verdict } = inspection;
  if (!isRejection(verdict)) return 0;
  return verdict.rejection === 'keys-unavailable' ? keysAway : 1;
}

/** The token in a text, which may be a field line. */
export function readToken(text: string): string {
  const line = trimOws(text.replace(/^\ufeff/, '').trim());
  const start = /^(?:authorization:[ \t]*)?(?:bearer|dpop)(?: +|$)/i.exec(line)?.[0].length ?? 0;
  return line.slice(start);
}

/** The claims of a token, unverified; never the signature. */
export function claimsOf(token: string): Claims | undefined {
  if (!isCompactToken(token)) return undefined;
  return parseJsonObject(Buffer.from(token.split('.', 2)[1] ?? '', 'base64url'));
}

function jsonOf({ facts, verdict }: TokenInspection): object {
  if (!isRejection(verdict))
    return { accepted: true, subject: verdict.subject, scopes: verdict.scopes, facts };
  const { rejection, reason } = verdict;
  return { accepted: false, rejection, reason, see: reasonLink(rejection, reason), facts };
}
