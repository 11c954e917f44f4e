/**
 * One contestant of bench/url-resolver.ts: `node url-resolver-server.ts MODE ENTRIES FILE`. Prints the port and the cost of
 * loading as one line of JSON.
 */
import { createResolver } from '../test/unit/url-resolver/resolver-request.ts';
import http from 'node:http';
import type { CanonicalRequest } from '../src/http/canonical-request.ts';
import { buildRequestRules, canonicaliseRequest } from '../src/http/canonicalise-request.ts';
import { createPeer, type Peer } from '../src/http/peer.ts';
import { isRejection } from '../src/http/rejection.ts';
import { endResponse } from '../src/http/write-response.ts';
import type { UrlResolver } from '../src/url-resolver/filter.ts';
import { idOf, urlOf } from './url-resolver-rows.ts';

const [, , mode = 'bare', entriesText = '1000', file = ''] = process.argv;
const entries = Number(entriesText);
const publicUrl = 'https://api.shop.example';
const peers = new WeakMap<object, Peer>();
const sample = await sampleAnswer();
const loading = { ms: 0, longestBlockMs: 0, memoryMiB: 0 };
const listener = mode === 'bare' ? answerBare() : answerResolved(await load());

const server = http.createServer(listener);
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  console.log(JSON.stringify({ port, loading }));
});

/** Writes the bytes of one resolved answer, without reading the request. */
function answerBare(): http.RequestListener {
  const { status, fields, body } = sample;
  return (_, response) => {
    response.writeHead(status, [...fields]);
    response.end(body, 'latin1');
  };
}

/** Does what the listener does for a cached answer: canonical request, resolver, response. */
function answerResolved(resolver: UrlResolver): http.RequestListener {
  const rules = buildRequestRules({ upstreamHost: 'shop', requestBodyBytes: 1 << 20 });
  return (incoming, response) => {
    const { socket } = incoming;
    const known = peers.get(socket);
    const peer = known ?? createPeer(socket.remoteAddress, false, rules.isTrusted);
    if (known === undefined) peers.set(socket, peer);
    const request = canonicaliseRequest(incoming, peer, rules);
    const answer = isRejection(request) ? request : resolver.answer(request);
    if (answer === undefined || answer instanceof Promise || isRejection(answer)) {
      response.writeHead(500).end();
      return;
    }
    response.writeHead(answer.status, [...answer.fields]);
    endResponse(incoming, response, answer.body ?? undefined);
  };
}

async function load(): Promise<UrlResolver> {
  const resolver =
    mode === 'file'
      ? createResolver({ publicUrl, mappingFile: { path: file } })
      : createResolver({ publicUrl, upstream: { ask: answerAsShop }, maxEntries: entries });
  globalThis.gc?.();
  const memoryBefore = process.memoryUsage().rss;
  const started = performance.now();
  const stopWatch = watchLoop();
  await resolver.start();
  if (mode === 'cache') await fill(resolver);
  loading.longestBlockMs = stopWatch();
  loading.ms = performance.now() - started;
  globalThis.gc?.();
  loading.memoryMiB = (process.memoryUsage().rss - memoryBefore) / 2 ** 20;
  return resolver;
}

async function fill(resolver: UrlResolver): Promise<void> {
  for (let i = 0; i < entries; i += 100) {
    await Promise.all(
      Array.from({ length: Math.min(100, entries - i) }, (_, k) => resolver.answer(requestOf(urlOf(i + k)))),
    );
  }
}

/** Measures by how much a timer of one millisecond was late at most. */
function watchLoop(): () => number {
  let last = performance.now();
  let longest = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last - 1);
    last = now;
  }, 1);
  return () => {
    clearInterval(timer);
    return longest;
  };
}

async function answerAsShop({ target }: { target: string }) {
  const url = decodeURIComponent(target.slice(target.indexOf('=') + 1));
  const attributes = { entityType: 'abstract-products', entityId: idOf(url) };
  const document = { data: [{ type: 'url-resolver', id: null, attributes }] };
  const fields = ['Content-Type', 'application/vnd.api+json'];
  return { status: 200, fields, body: Buffer.from(JSON.stringify(document)) };
}

function requestOf(url: string): CanonicalRequest {
  return {
    method: 'GET',
    path: '/url-resolver',
    query: `?url=${url}`,
    segments: ['url-resolver'],
    fields: ['Accept-Language', 'en'],
    host: 'api.shop.example',
    scheme: 'https',
    clientAddress: '127.0.0.1',
    requestId: 'bench',
    isFormPost: false,
    body: 'none',
    expectsContinue: false,
  };
}

async function sampleAnswer() {
  const resolver = createResolver({ publicUrl, upstream: { ask: answerAsShop } });
  await resolver.answer(requestOf(urlOf(0)));
  const answer = await resolver.answer(requestOf(urlOf(0)));
  await resolver.close();
  if (answer === undefined || isRejection(answer)) throw new Error('no sample');
  return answer;
}
