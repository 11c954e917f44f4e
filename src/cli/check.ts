import { faultText } from '../access/provider-fetch.ts';
import { listIssuers } from '../config/issuers.ts';
import { loadConfig } from '../config/load.ts';
import type { ConfigFile } from '../config/named-files.ts';
import type { Config } from '../config/schema.ts';
import { formatProblem, hasErrors, type Problem } from '../lib/problem.ts';
import { type CommandIo, type CommonChoice, processIo } from './command-io.ts';
import { adviceValidators } from './list-advice.ts';
import { withIssuers } from './token.ts';

/**
 * Checks every file and the key sources, and prints all problems. `offline`: asks no key source. Resolves to the exit code: 0,
 * or 1 when there is an error.
 */
export async function runCheck(
  options: CommonChoice & { readonly offline?: boolean },
  io: CommandIo = processIo,
): Promise<number> {
  const { env, cwd } = io;
  const result = await loadConfig({ file: options.config, env, cwd, validators: adviceValidators });
  const problems = 'problems' in result ? result.problems : result.warnings;
  const notes = 'config' in result ? await notesOf(result.config, options.offline === true) : [];
  const ok = !hasErrors(problems);
  if (options.json) {
    const files = result.files.map(({ role, name, path }) => ({ role, name, path }));
    io.out(JSON.stringify({ ok, files, problems, notes }, null, 2));
  } else {
    io.out([...problems.map(formatProblem), ...notes, summary(problems, notes, result.files)].join('\n'));
  }
  return ok ? 0 : 1;
}

async function notesOf(config: Config, isOffline: boolean): Promise<string[]> {
  return [
    ...looseAuth(config),
    ...(isOffline ? [] : await missingKeys(config)),
    ...missingProfile(config),
    ...unaskedFeatures(config),
  ];
}

/** Warnings about key sets that cannot be loaded from here. Key files are checked with the configuration. */
async function missingKeys(config: Config): Promise<string[]> {
  const remote = listIssuers(config.auth).filter(
    ({ keys }) => keys && ('jwks' in keys || 'discover' in keys),
  );
  if (remote.length === 0) return [];
  return withIssuers(config, ({ all }) =>
    remote.flatMap(({ path, name }) => {
      const status = all.find((issuer) => issuer.name === name)?.keys?.source.status();
      if (status === undefined || status.keys > 0) return [];
      return `warning: ${[...path, 'keys'].join('.')}: no key could be loaded (${faultText(status.lastError ?? 'none of them can be used')}); until one is loaded, its tokens get 503. --offline skips this check`;
    }),
  );
}

/** Warnings about missing settings that let a token for another API pass. */
function looseAuth({ auth }: Config): string[] {
  return listIssuers(auth).flatMap(({ path, issuer, audience, tokenType }) => {
    if (audience !== undefined || (issuer !== undefined && tokenType !== undefined)) return [];
    const setting = [...path, 'audience'].join('.');
    return [
      `warning: ${setting} is not set: a token that the same keys signed for another API is accepted; take the value from the aud of a sample token (shopward token --claims)`,
    ];
  });
}

/** A note where rows and tracked members match longer paths, although nothing says that the shop reads paths so. */
function missingProfile({ request }: Config): string[] {
  if (request.profile !== undefined || !request.lastPair) return [];
  return [
    'note: request.profile is not set: as in a Spryker shop, a longer path also counts as the row or tracked member at its end (changes of such a member are refused); set it to spryker for a Spryker shop, else to plain',
  ];
}

/** A note on the features that do not apply to requests that another proxy forwards. */
function unaskedFeatures(config: Config): string[] {
  if (config.authorize === false) return [];
  const sections = (['entityTags', 'refreshTokens', 'urlResolver'] as const).filter(
    (section) => config[section] !== false,
  );
  const features = [...sections, 'limits.requestBody', 'WebSockets'].join(', ');
  return [`note: authorize: ${features} do not apply to requests that another proxy forwards`];
}

function summary(problems: readonly Problem[], notes: readonly string[], files: readonly ConfigFile[]) {
  const checked = files.length === 0 ? 'nothing' : files.map(({ name }) => name).join(', ');
  const found = (['error', 'warning'] as const).map((noun) => {
    const ofFiles = problems.filter(({ severity }) => severity === noun).length;
    return count(ofFiles + notes.filter((note) => note.startsWith(`${noun}:`)).length, noun);
  });
  return `checked ${checked}: ${found.filter((one) => one !== '').join(', ') || 'ok'}`;
}

function count(number: number, noun: string): string {
  return number === 0 ? '' : `${number} ${noun}${number === 1 ? '' : 's'}`;
}
