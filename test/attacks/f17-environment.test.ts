import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

const start = `
  const { createHttpProxy3Engine } = await import(${JSON.stringify(new URL('../../src/upstream/http-proxy-3/engine.ts', import.meta.url).href)});
  const upstream = { scheme: 'http', hostname: '127.0.0.1', port: 1 };
  await createHttpProxy3Engine({ upstream, connectTimeoutMs: 1, connections: 1, queueLimit: 1, queueTimeoutMs: 1 }).close();
`;

const { PATH, NODE_COMPILE_CACHE } = process.env;

/** F17, O12: the environment must not switch http-proxy-3's framing rules, nor make it log paths and options. */
it.each([
  [{ FORCE_FETCH_PATH: 'true' }, /FORCE_FETCH_PATH/],
  [{ DEBUG: 'http-proxy-3*' }, /DEBUG/],
  [{ DEBUG: '*' }, /DEBUG/],
  [{ DEBUG: 'http-proxy-3:*' }, /DEBUG/],
  [{ DEBUG: 'express' }, undefined],
  [{}, undefined],
])('with %j the engine starts or says why not', (environment, refusal) => {
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', start], {
    env: { PATH, NODE_COMPILE_CACHE, ...environment },
    encoding: 'utf8',
  });
  expect(status).toBe(refusal === undefined ? 0 : 1);
  if (refusal !== undefined) expect(stderr).toMatch(refusal);
});
