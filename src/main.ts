#!/usr/bin/env node
/** The entry of the command. It loads only what the command needs. */
const [, , ...words] = process.argv;

/** As in `engines` of package.json, for which npm only warns. */
const oldestNode = 24;
if (Number.parseInt(process.versions.node, 10) < oldestNode) {
  const cure = 'Install a newer one, or put one beside shopward: npm install node@26, then npx shopward';
  process.stderr.write(`shopward needs Node ${oldestNode} or later; this is ${process.version}. ${cure}\n`);
  // EX_CONFIG of sysexits.h: a supervisor need not start it again.
  process.exit(78);
}

/** Options of a plain `serve [--config FILE]`, as systemd units and images use it; undefined: commander has to parse it. */
function plainServe(): { readonly config?: string } | undefined {
  const [option, file, ...more] = words[0] === 'serve' ? words.slice(1) : words;
  if (option === undefined) return {};
  const isOfFile = (option === '--config' || option === '-c') && file !== undefined && !file.startsWith('-');
  return isOfFile && more.length === 0 ? { config: file } : undefined;
}

// Neither a full disk behind standard error nor a reload during the start may end the process; SIGUSR1 would open Node's debugger.
process.stderr.on('error', () => {});
for (const signal of ['SIGHUP', 'SIGUSR1'] as const) process.on(signal, () => {});

const serve = plainServe();
if (serve !== undefined) {
  (await import('./cli/keep-compiled.ts')).keepCompiled();
  process.exitCode = await (await import('./cli/serve.ts')).runServe(serve);
} else await (await import('./cli/command-line.ts')).runCommandLine(process.argv);

export {};
