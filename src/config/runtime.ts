/** The parts of `process` that can make the runtime unsafe. */
interface Runtime {
  readonly execArgv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

interface RuntimeProblem {
  readonly severity: 'error' | 'warning';
  readonly text: string;
}

/** Flags that switch off a protection, on the command line or in NODE_OPTIONS. */
const unsafeFlags: readonly { readonly flag: RegExp; readonly text: string }[] = [
  { flag: /^--insecure-http-parser(=|$)/, text: '--insecure-http-parser lets smuggled requests through' },
  { flag: /^--tls-min-v1\.[01]$/, text: '--tls-min-v1.0 and --tls-min-v1.1 accept broken TLS' },
];
const inspectFlag = /^--inspect(-brk|-port|-wait)?(=|$)/;

/** Finds what makes a serving process unsafe: errors prevent the start, warnings are printed. */
export function findUnsafeRuntime({ execArgv, env }: Runtime): RuntimeProblem[] {
  const problems: RuntimeProblem[] = [];
  const add = (text: string, severity: RuntimeProblem['severity'] = 'error') =>
    problems.push({ severity, text });
  // Node reads underscores in option names as dashes.
  const flags = [...execArgv, ...(env.NODE_OPTIONS ?? '').split(/\s+/)].map((flag) =>
    dashed(flag.replace(/^"|"$/g, '')),
  );
  for (const { flag, text } of unsafeFlags) if (flags.some((one) => flag.test(one))) add(text);
  if (flags.some((flag) => inspectFlag.test(flag))) {
    const severity = env.NODE_ENV === 'production' ? 'error' : 'warning';
    add('--inspect opens a debugger that can read every token', severity);
  }
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === '0') {
    add(
      'NODE_TLS_REJECT_UNAUTHORIZED=0 accepts any certificate; name your own authority in NODE_EXTRA_CA_CERTS',
    );
  }
  return problems;
}

/** An option with dashes in its name, and its value unchanged. */
function dashed(flag: string): string {
  const [name = ''] = flag.split('=', 1);
  return name.startsWith('--') ? name.replaceAll('_', '-') + flag.slice(name.length) : flag;
}
