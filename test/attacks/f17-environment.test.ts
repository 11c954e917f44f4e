import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

const start = `
  const { createWebSocketForwarder } = await import(${JSON.stringify(new URL('../../src/upstream/websocket.ts', import.meta.url).href)});
  const upstream = { scheme: 'http', hostname: '127.0.0.1', port: 1 };
  createWebSocketForwarder({ upstream, connectTimeoutMs: 1, handshakeTimeoutMs: 1, limit: 1 }).close();
`;

const { PATH, NODE_COMPILE_CACHE } = process.env;

/** F17, O12: the environment must not make http-proxy-3 log paths and options. */
it.each([
  [{ DEBUG: 'http-proxy-3*' }, /DEBUG/],
  [{ DEBUG: '*' }, /DEBUG/],
  [{ DEBUG: 'http-proxy-3:*' }, /DEBUG/],
  [{ DEBUG: 'express' }, undefined],
  [{}, undefined],
])('with %j the WebSocket forwarder starts or says why not', (environment, refusal) => {
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', start], {
    env: { PATH, NODE_COMPILE_CACHE, ...environment },
    encoding: 'utf8',
  });
  expect(status).toBe(refusal === undefined ? 0 : 1);
  if (refusal !== undefined) expect(stderr).toMatch(refusal);
});
