import type { Problem } from '../lib/problem.ts';

/** Finds what makes a serving process unsafe: errors prevent the start, warnings are printed. */
export function findUnsafeRuntime({ execArgv, env }: Pick<NodeJS.Process, 'execArgv' | 'env'>) {
  // Node reads underscores in option names as dashes.
  const flags = [...execArgv, ...(env.NODE_OPTIONS ?? '').split(/\s+/)].map((flag) =>
    dashed(flag.replace(/^"|"$/g, '')),
  );
  const has = (flag: RegExp) => flags.some((one) => flag.test(one));
  const ofDebugger = env.NODE_ENV === 'production' ? 'error' : 'warning';
  const findings: readonly (readonly [isUnsafe: boolean, text: string, severity?: Problem['severity']])[] = [
    [has(/^--insecure-http-parser(=|$)/), '--insecure-http-parser lets smuggled requests through'],
    [has(/^--tls-min-v1\.[01]$/), '--tls-min-v1.0 and --tls-min-v1.1 accept broken TLS'],
    [
      has(/^--inspect(-brk|-port|-wait)?(=|$)/),
      '--inspect opens a debugger that can read every token',
      ofDebugger,
    ],
    [
      env.NODE_TLS_REJECT_UNAUTHORIZED === '0',
      'NODE_TLS_REJECT_UNAUTHORIZED=0 accepts any certificate; name your own authority in NODE_EXTRA_CA_CERTS',
    ],
  ];
  return findings.flatMap(([isUnsafe, text, severity = 'error']) => (isUnsafe ? [{ severity, text }] : []));
}

/** An option with dashes in its name, and its value unchanged. */
function dashed(flag: string): string {
  const [name = ''] = flag.split('=', 1);
  return name.startsWith('--') ? name.replaceAll('_', '-') + flag.slice(name.length) : flag;
}
