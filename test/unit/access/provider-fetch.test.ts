import { createServer } from 'node:https';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { createAgent, fetchJson, postForm } from '../../../src/access/provider-fetch.ts';
import { maxHandshakeBytes } from '../../../src/lib/bound-handshake.ts';
import { listen } from '../../harness/listen.ts';
import { testCertificate, testKey } from '../../harness/tls-fixture.ts';

const authorities = getCACertificates('default');
beforeAll(() => setDefaultCACertificates([testCertificate]));
afterAll(() => setDefaultCACertificates(authorities));

/** A source whose certificates have about this many octets; `connections` counts those that asked for something. */
async function startSource(bytes: number) {
  const length = Buffer.from(testCertificate.replace(/-----.*-----/g, ''), 'base64').length + 5;
  const cert = testCertificate.repeat(Math.max(1, Math.floor(bytes / length)));
  const connections = new Set<unknown>();
  const server = createServer({ cert, key: testKey }, ({ socket }, response) => {
    connections.add(socket);
    response.end(`{"text":"${'x'.repeat(100_000)}"}`);
  });
  const { port, close } = await listen(server);
  onTestFinished(close);
  return { url: `https://localhost:${port}/`, connections };
}

const bounds = () => ({ maxBytes: 200_000, deadline: AbortSignal.timeout(60_000) });
const get = (url: string) =>
  fetchJson(url, { accept: 'application/json', signal: AbortSignal.timeout(60_000), ...bounds() });

it('certificates of 12 KiB: the document is read, and an agent keeps its connection', async () => {
  const { url, connections } = await startSource(maxHandshakeBytes * 0.75);
  expect(await get(url)).toHaveProperty('value.text');
  const agent = createAgent(url, { keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const post = () => postForm(agent, { url, authorization: 'Basic YTpi', form: 'token=a', ...bounds() });
  for (let i = 0; i < 3; i += 1) expect(await post()).toHaveProperty('value.text');
  expect(connections.size).toBe(2);
});

it('a certificate of another authority is named', async () => {
  const { url } = await startSource(0);
  setDefaultCACertificates([]);
  const fetched = await get(url);
  setDefaultCACertificates([testCertificate]);
  expect(fetched).toEqual({ error: 'unreachable DEPTH_ZERO_SELF_SIGNED_CERT' });
});

it('certificates of 24 KiB, which may be slow to verify: unreachable', async () => {
  const { url, connections } = await startSource(maxHandshakeBytes * 1.5);
  const agent = createAgent(url, { keepAlive: true });
  onTestFinished(() => agent.destroy());
  expect(await get(url)).toEqual({ error: 'unreachable ECONNRESET' });
  const form = { url, authorization: 'Basic YTpi', form: 'token=a', ...bounds() };
  expect(await postForm(agent, form)).toEqual({ error: 'unreachable ECONNRESET' });
  expect(connections.size).toBe(0);
});
