#!/usr/bin/env node
/** Where every process of shopward begins. What one of them does not need it does not load. */
const [, , verb, ...choices] = process.argv;

/** package.json says it to npm, which only warns. */
const oldestNode = 24;
if (Number.parseInt(process.versions.node, 10) < oldestNode) {
  const cure = 'Install a newer one, or put one beside shopward: npm install node@26, then npx shopward';
  process.stderr.write(`shopward needs Node ${oldestNode} or later; this is ${process.version}. ${cure}\n`);
  // EX_CONFIG of sysexits.h: starting again mends nothing.
  process.exit(78);
}

const isAlive = verb === 'health' && (await (await import('./cli/quick-health.ts')).isAlive(choices));
if (!isAlive) await (await import('./cli/command-line.ts')).runCommandLine(process.argv);

export {};
