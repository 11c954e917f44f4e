#!/usr/bin/env node
/** Where every process of shopward begins. What one of them does not need it does not load. */
const [, , ...words] = process.argv;

/** package.json says it to npm, which only warns. */
const oldestNode = 24;
if (Number.parseInt(process.versions.node, 10) < oldestNode) {
  const cure = 'Install a newer one, or put one beside shopward: npm install node@26, then npx shopward';
  process.stderr.write(`shopward needs Node ${oldestNode} or later; this is ${process.version}. ${cure}\n`);
  // EX_CONFIG of sysexits.h: starting again mends nothing.
  process.exit(78);
}

/** What `serve` is given where it is written plainly, as units and images write it; undefined: it takes a parser. */
function plainServe(): { readonly config?: string } | undefined {
  const [option, file, ...more] = words[0] === 'serve' ? words.slice(1) : words;
  if (option === undefined) return {};
  const isOfFile = (option === '--config' || option === '-c') && file !== undefined && !file.startsWith('-');
  return isOfFile && more.length === 0 ? { config: file } : undefined;
}

const isAlive =
  words[0] === 'health' && (await (await import('./cli/quick-health.ts')).isAlive(words.slice(1)));
const serve = plainServe();
if (serve !== undefined) process.exitCode = await (await import('./cli/serve.ts')).runServe(serve);
else if (!isAlive) await (await import('./cli/command-line.ts')).runCommandLine(process.argv);

export {};
