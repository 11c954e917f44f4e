import { expect, it } from 'vitest';
import { findUnsafeRuntime } from '../../../src/config/runtime.ts';

const safe = { execArgv: [] as string[], env: {} };

it.each([
  ['nothing', {}, []],
  ['this very process', { execArgv: process.execArgv }, []],
  ['the lax parser as a flag', { execArgv: ['--insecure-http-parser'] }, ['error']],
  ['the lax parser with underscores', { execArgv: ['--insecure_http_parser'] }, ['error']],
  ['the lax parser among NODE_OPTIONS', { env: { NODE_OPTIONS: '-r x  --insecure-http-parser' } }, ['error']],
  ['the lax parser in quotes', { env: { NODE_OPTIONS: '"--insecure-http-parser"' } }, ['error']],
  ['a debugger', { execArgv: ['--inspect=0.0.0.0:9229'] }, ['warning']],
  ['a debugger that breaks', { env: { NODE_OPTIONS: '--inspect-brk' } }, ['warning']],
  ['a debugger in production', { execArgv: ['--inspect'], env: { NODE_ENV: 'production' } }, ['error']],
  ['other flags', { execArgv: ['--no-warnings'], env: { NODE_OPTIONS: '--max-http-header-size=9' } }, []],
  ['unchecked certificates', { env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' } }, ['error']],
])('the problems of a runtime with %s', (_name, given, severities) => {
  expect(findUnsafeRuntime({ ...safe, ...given }).map(({ severity }) => severity)).toEqual(severities);
});
