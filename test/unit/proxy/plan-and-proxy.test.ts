import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { compileProtectedList } from '../../../src/access/packed-list.ts';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';
import { compileRules } from '../../../src/app/filter-definition.ts';
import { filterDefinitions } from '../../../src/app/filters.ts';
import { createCanonicalise } from '../../../src/app/public-port.ts';
import { secretsOf } from '../../../src/app/secrets.ts';
import { type App, createApp } from '../../../src/app.ts';
import { fileValidators } from '../../../src/cli/file-validators.ts';
import { loadConfig } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/schema.ts';
import { buildRejections, isRejection } from '../../../src/http/rejection.ts';
import type { Matcher } from '../../../src/proxy/filter.ts';
import {
  type ForwardPlan,
  knownRefusal,
  type PlanRules,
  plan,
  planForward,
} from '../../../src/proxy/plan.ts';
import type { ExchangeRecord } from '../../../src/telemetry/exchange-record.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { issueToken } from '../../harness/shopward.ts';
import { makeSigner, publicPem } from '../access/signing.ts';

/** The plan (printed by `explain`) and the running proxy get the same requests. */
const questions = 600;
const atOnce = 16;

const signer = makeSigner('RS256');
const reached = new Set<string>();
const records = new Map<string, ExchangeRecord>();
/** Answer to `/en`. Any other URL gets an answer that the resolver cannot read. */
const resolved = JSON.stringify({
  data: [
    {
      type: 'url-resolver',
      id: null,
      attributes: { entityType: 'category-nodes', entityId: '5' },
      links: { self: 'http://shop/url-resolver?url=/en' },
    },
  ],
});
let shop: http.Server;
let folder: string;
let app: App;
let port: number;
let config: Config;
let canonicalise: ReturnType<typeof createCanonicalise>;
let rules: PlanRules<Matcher>;

beforeAll(async () => {
  const note = ({ headers }: http.IncomingMessage) => void reached.add(String(headers['x-question']));
  shop = http.createServer((request, response) => {
    note(request);
    const body = request.url?.includes('url=%2Fen') ? resolved : '{}';
    response.setHeader('Content-Type', 'application/vnd.api+json');
    request.resume().on('end', () => response.end(body));
  });
  shop.on('upgrade', (request, socket) => {
    note(request);
    socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
  });
  shop.listen(0, '127.0.0.1');
  await once(shop, 'listening');
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-plan-'));
  await writeFile(path.join(folder, 'public.pem'), publicPem(signer));
  const shipped = path.join(import.meta.dirname, '../../../config/protected-resources.yaml');
  const text = await readFile(shipped, 'utf8');
  // A row for requests that the resolver hands on.
  await writeFile(
    path.join(folder, 'list.yaml'),
    text.replace(/^groups:\n/m, '$&  Resolver:\n    - GET /url-resolver\n'),
  );
  const settings = {
    listen: { host: '127.0.0.1', port: 0, drainDelay: '0s' },
    admin: false,
    upstream: { url: `http://127.0.0.1:${(shop.address() as AddressInfo).port}`, webSocket: true },
    protectedResources: 'list.yaml',
    urlResolver: {},
    auth: { keys: { files: ['public.pem'] } },
    trustedProxies: ['127.0.0.1'],
    cors: { origins: ['https://shop.example'] },
    entityTags: {
      // After a write got in the way of another client's, anonymous clients wait for a third of the lease.
      lease: '6s',
      resources: [{ collection: '/carts', member: '/carts/{cart_id}', methods: ['PATCH', 'DELETE'] }],
    },
  };
  await writeFile(path.join(folder, 'shopward.yaml'), stringify(settings));
  const loaded = await loadConfig({
    file: 'shopward.yaml',
    env: {},
    cwd: folder,
    validators: fileValidators,
  });
  if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems));
  config = loaded.config;
  canonicalise = createCanonicalise(config, 'upstream');
  const protectedList = loaded.files.find(({ role }) => role === 'protected-resources')?.text ?? '';
  const { list } = parseProtectedList(protectedList, 'list');
  if (list === undefined) throw new Error('the list is broken');
  rules = compileRules(config, compileProtectedList(list, config.request), filterDefinitions);
  app = await createApp({
    config,
    protectedList: { text: protectedList },
    secrets: secretsOf(loaded),
    log: createLog('silent'),
    worker: { noteExchange: (record) => void records.set(record.requestId, record) },
  });
  port = Number(new URL((await app.listen()).url).port);
});
afterAll(async () => {
  await app.close(0);
  shop.closeAllConnections();
  shop.close();
  await rm(folder, { recursive: true, force: true });
});

interface Question {
  readonly method: string;
  readonly target: string;
  readonly token: 'none' | 'good';
  /** Name, value, name, value … */
  readonly fields: readonly string[];
}

const segment = fc.constantFrom(
  ...[
    'carts',
    '1',
    'items',
    'x',
    'orders',
    'customers',
    'wishlists',
    'stores',
    'abstract-products',
    'mine',
    '',
  ],
  ...['Carts', '%63arts', 'carts;x', 'carts.', 'carts%2F1', '%2e%2e', '..', 'index.php', 'v1', '1.json'],
  ...['access-tokens', 'refresh-tokens', 'token', 'url-resolver', 'protected-resources', '.well-known'],
);
const ordinary = fc.record({
  method: fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'),
  target: fc
    .tuple(
      fc.oneof(
        fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => `/${segments.join('/')}`),
        fc.constantFrom('/carts/1', '/carts', '/carts/1/items', '/refresh-tokens/mine', '/url-resolver'),
        fc.constant('/.well-known/oauth-protected-resource'),
      ),
      fc.constantFrom(
        ...['', '', '', '?url=%2Fen', '?url=%2Fother', '?url=/en&url=/x', '?url[]=%2Fen'],
        ...['?refreshToken=abc', '?_method=DELETE'],
      ),
    )
    .map(([where, query]) => where + query),
  token: fc.constantFrom('none' as const, 'good' as const),
  fields: fc
    .array(
      fc.constantFrom(
        ['Content-Type', 'application/json'],
        ['Content-Type', 'application/x-www-form-urlencoded'],
        ['If-Match', '"t"'],
        ['If-None-Match', '*'],
        ['Accept', 'text/html'],
        ['X-HTTP-Method-Override', 'DELETE'],
        ['Origin', 'https://shop.example', 'Access-Control-Request-Method', 'PATCH'],
      ),
      { maxLength: 2 },
    )
    .map((fields) => fields.flat()),
});
const upgrade = ['Connection', 'Upgrade', 'Upgrade', 'websocket', 'Sec-WebSocket-Version', '13'];
const handshake = ordinary.map((one) => ({
  ...one,
  method: 'GET',
  fields: [...one.fields, ...upgrade, 'Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
}));

it(`the plan and the running proxy answer ${questions} questions alike`, async () => {
  const asked: Question[] = fc.sample(fc.oneof({ arbitrary: ordinary, weight: 3 }, handshake), questions);
  const disagreements: unknown[] = [];
  const kinds = new Set<string>();
  const token = issueToken(signer);
  for (let start = 0; start < asked.length; start += atOnce) {
    const some = asked.slice(start, start + atOnce).map(async (question, i) => {
      const id = `question-${start + i}`;
      const seen = await ask(question, id, token);
      const expected = expectedOf(question);
      kinds.add(expected.kind);
      if (!expected.allows(seen)) disagreements.push({ question, expected: expected.kind, seen });
    });
    await Promise.all(some);
  }
  expect(disagreements).toEqual([]);
  // The sample contains every kind of plan.
  expect([...kinds]).toEqual(
    expect.arrayContaining([
      ...['refused', 'endpoint', 'needs a token', 'refused after the token', 'forwarded'],
      ...['resolver', 'handed on: needs a token', 'handed on: forwarded'],
    ]),
  );
}, 240_000);

interface Seen {
  readonly status: number;
  readonly isReached: boolean;
  readonly route: string | undefined;
  readonly rejection: string | undefined;
}

/** The kind of the plan for a question, and a check of the proxy's answer. */
function expectedOf(question: Question): { kind: string; allows(seen: Seen): boolean } {
  const { method, target } = question;
  const incoming = {
    ...{
      method,
      url: target,
      httpVersionMajor: 1,
      httpVersionMinor: 1,
      rawHeaders: headOf(question, 'q', 'x'),
    },
    socket: new net.Socket(),
  } as unknown as http.IncomingMessage;
  const request = canonicalise(incoming);
  if (isRejection(request)) return refusedAs('refused', request.rejection, '*');
  const planned = plan(request, rules);
  if (isRejection(planned)) return refusedAs('refused', planned.rejection, '*');
  if (!('endpoint' in planned)) return forwardedAs('', question, planned);
  const { name, route } = planned.endpoint.filter;
  // The resolver sends its own request, and hands the client's on if it cannot read the answer.
  if (name === 'url-resolver' && /\?url=(?:%2Fother|\/en&url=\/x)/.test(target)) {
    const next = planForward(request, rules);
    if (isRejection(next)) return refusedAs('handed on: refused', next.rejection, '*');
    return forwardedAs('handed on: ', question, next);
  }
  return {
    kind: name === 'url-resolver' ? 'resolver' : 'endpoint',
    allows: (seen) => !seen.isReached && seen.route === route && seen.status !== 401,
  };
}

function refusedAs(kind: string, name: string, route: string) {
  return {
    kind,
    allows: (seen: Seen) => !seen.isReached && seen.rejection === name && seen.route === route,
  };
}

function forwardedAs(how: string, question: Question, planned: ForwardPlan<Matcher>) {
  if (planned.token !== 'none' && question.token === 'none') {
    return refusedAs(`${how}needs a token`, 'access-token-missing', planned.route);
  }
  const known = knownRefusal(planned);
  if (known !== undefined) return refusedAs(`${how}refused after the token`, known.rejection, planned.route);
  const refusable = rejectionsOf(planned);
  return {
    kind: `${how}forwarded`,
    allows: ({ isReached, route, rejection }: Seen) =>
      route === planned.route &&
      (isReached
        ? rejection === undefined || isReadWith(planned, rejection)
        : refusable.has(rejection ?? 'not answered')),
  };
}

/** `If-Match` of a read is compared only with the answer of the shop. */
function isReadWith({ forward: { method } }: ForwardPlan<Matcher>, rejection: string): boolean {
  return rejection === 'if-match-invalid' && (method === 'GET' || method === 'HEAD');
}

/** Rejections that planned filters may give for fields, bodies and stores. Without filters: none. */
function rejectionsOf({ filters, forward }: ForwardPlan<Matcher>): ReadonlySet<string> {
  const table = Object.keys(buildRejections());
  const ofTags = [
    'if-match-missing',
    'if-match-invalid',
    'collection-write',
    'resource-busy',
    'upstream-timeout',
  ];
  const names = filters.flatMap(({ filter }) =>
    filter.name === 'entity-tags'
      ? forward.method === 'GET' || forward.method === 'HEAD'
        ? []
        : ofTags
      : table.filter((name) => name.includes('token-')),
  );
  return new Set(names);
}

function headOf({ method, token, fields }: Question, id: string, value: string): string[] {
  const head = ['Host', 'api.shop.example', 'X-Question', id, 'X-Request-Id', id, ...fields];
  if (token === 'good') head.push('Authorization', `Bearer ${value}`);
  if (!['GET', 'HEAD', 'OPTIONS'].includes(method)) head.push('Content-Length', '2');
  if (!fields.includes('Upgrade')) head.push('Connection', 'close');
  return head;
}

async function ask(question: Question, id: string, token: string): Promise<Seen> {
  const head = headOf(question, id, token);
  const lines = head.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${head[i + 1]}\r\n`] : []));
  const body = head.includes('Content-Length') ? '{}' : '';
  const socket = net.connect(port, '127.0.0.1');
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk) => (text += chunk));
  socket.on('error', () => {});
  socket.write(`${question.method} ${question.target} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
  await new Promise<void>((resolve) => socket.once('close', () => resolve()));
  // Ours where the request was not read so far; a 101 names none.
  const requestId = /^x-request-id: (\S+)/im.exec(text)?.[1] ?? id;
  if (!records.has(requestId)) {
    await expect
      .poll(() => records.has(requestId), { timeout: 10_000, interval: 2, message: text })
      .toBe(true);
  }
  const record = records.get(requestId);
  return {
    status: Number(text.slice(9, 12)),
    isReached: reached.has(id),
    route: record?.route,
    rejection: record?.rejection,
  };
}
