/**
 * Asks the registry for known weaknesses of every package in package-lock.json, and says in one line what came of it. Exits 1
 * when there are any. Not every registry (mirrors, most of all) serves advisories: then nothing is known, and it says so and
 * exits 0, or 2 with `--required`.
 */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { readArguments } from './arguments.ts';

interface Advisory {
  readonly name: string;
  readonly severity: string;
  readonly title: string;
  readonly url: string;
}
/** What `npm audit --json` prints: a report, or what the registry answered instead of one. */
interface Answer {
  readonly vulnerabilities?: Readonly<Record<string, { readonly via: readonly (Advisory | string)[] }>>;
  readonly metadata?: { readonly dependencies: { readonly total: number } };
  readonly message?: string;
}

const { required: isRequired } = readArguments<{ readonly required?: true }>({
  name: 'npm run audit --',
  about:
    'Asks the registry for known weaknesses of the packages in package-lock.json; exits with 1 when there are any.',
  options: [['--required', 'exits with 2 where the registry serves no advisories']],
});
const { stdout, stderr, error } = spawnSync('npm', ['audit', '--json', '--package-lock-only'], {
  cwd: path.join(import.meta.dirname, '..'),
  encoding: 'utf8',
});
const { vulnerabilities, metadata, message } = parse(stdout);
if (vulnerabilities === undefined || metadata === undefined) {
  // Without the address: a registry's can hold credentials.
  const reason = (message ?? error?.message ?? stderr).split(' - ')[0]?.trim() || 'no answer';
  console.log(
    `not audited: the registry serves no advisories (${reason}); nothing is known of these packages`,
  );
  process.exitCode = isRequired ? 2 : 0;
} else {
  const weaknesses = Object.values(vulnerabilities)
    .flatMap(({ via }) => via)
    // A name stands for a package that is only built upon a weak one.
    .filter((one) => typeof one !== 'string');
  for (const { name, severity, title, url } of weaknesses)
    console.log(`${severity}: ${name}: ${title} (${url})`);
  console.log(`audited: ${metadata.dependencies.total} packages, ${weaknesses.length} known weaknesses`);
  process.exitCode = weaknesses.length === 0 ? 0 : 1;
}

function parse(text: string): Answer {
  try {
    return JSON.parse(text) as Answer;
  } catch {
    return {};
  }
}
