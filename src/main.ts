#!/usr/bin/env node
/** Where every process of shopward begins. What one of them does not need it does not load. */
const [, , verb, ...choices] = process.argv;
const isAlive = verb === 'health' && (await (await import('./cli/quick-health.ts')).isAlive(choices));
if (!isAlive) await (await import('./cli/command-line.ts')).runCommandLine(process.argv);

export {};
