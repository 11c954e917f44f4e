import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import net from 'node:net';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { compileProtectedList } from '../../../src/access/packed-list.ts';
import { resourceId } from '../../../src/access/protected-list.ts';
import { compileRules } from '../../../src/app/filter-definition.ts';
import { filterDefinitions } from '../../../src/app/filters.ts';
import { createCanonicalise } from '../../../src/app/public-port.ts';
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
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { type ShopwardHere, startShopwardHere } from '../../harness/shopward-here.ts';
import { listOf, readList } from '../access/list-text.ts';

/** The plan (printed by `explain`) and the running proxy get the same requests. */
const questions = 600;
const atOnce = 16;

const reached = new Set<string>();
const records = new Map<string, ExchangeRecord>();
/** Answer to `/en`. Any other URL gets an answer that the resolver cannot read. */
const attributes = { entityType: 'category-nodes', entityId: '5' };
const links = { self: 'http://shop/url-resolver?url=/en' };
const resolved = JSON.stringify({ data: [{ type: 'url-resolver', id: null, attributes, links }] });
const shipped = path.join(import.meta.dirname, '../../../config/protected-resources.yaml');
/** With a row for requests that the resolver passes on. */
const rows = [...readList(readFileSync(shipped, 'utf8')).rows.map(resourceId), 'GET /url-resolver'];

let shop: RecordingUpstream;
let shopward: ShopwardHere;
let canonicalise: ReturnType<typeof createCanonicalise>;
let rules: PlanRules<Matcher>;

beforeAll(async () => {
  shop = await startRecordingUpstream(({ head, connection }) => {
    reached.add(/^x-question: (.*)\r$/im.exec(head)?.[1] ?? '');
    if (/^upgrade: websocket\r$/im.test(head)) {
      const fields = 'Upgrade: websocket\r\nConnection: Upgrade\r\n';
      connection.socket.end(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n`);
      return undefined;
    }
    const body = head.startsWith('HEAD ') ? '' : /^\S+ \S*url=%2Fen\b/.test(head) ? resolved : '{}';
    return answer(body, 'Content-Type: application/vnd.api+json\r\n');
  });
  shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${shop.port}`,
    rows,
    config: {
      ...{ admin: false, store: undefined, log: { level: 'silent' } },
      upstream: { webSocket: true },
      trustedProxies: ['127.0.0.1'],
      cors: { origins: ['https://shop.example'] },
      entityTags: {
        // After an anonymous write made a user's request fail, anonymous clients wait for a third of the lease.
        ...{ lease: '6s', sendBy: '4s', wait: undefined },
        resources: [{ collection: '/carts', member: '/carts/{cart_id}', methods: ['PATCH', 'DELETE'] }],
      },
    },
    noteExchange: (record) => void records.set(record.requestId, record),
  });
  const { config } = shopward;
  canonicalise = createCanonicalise(config);
  const list = compileProtectedList(readList(listOf(...rows)), config.request);
  rules = compileRules(config, list, filterDefinitions);
});
afterAll(async () => {
  await shopward.stop();
  await shop.close();
});

interface Question {
  readonly method: string;
  readonly target: string;
  readonly token: 'none' | 'good';
  /** Name, value, name, value … */
  readonly fields: readonly string[];
}

const words = (text: string) => text.split(' ');
const segment = fc.constantFrom(
  '',
  ...words('carts 1 items x orders customers wishlists stores abstract-products mine index.php v1 1.json'),
  ...words('Carts %63arts carts;x carts. carts%2F1 %2e%2e .. access-tokens refresh-tokens token'),
  ...words('url-resolver protected-resources .well-known'),
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
  const token = shopward.issueToken();
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
  const version = { httpVersionMajor: 1, httpVersionMinor: 1 };
  const head = { method, url: target, ...version, rawHeaders: headOf(question, 'q', 'x') };
  const incoming = { ...head, socket: new net.Socket() } as unknown as IncomingMessage;
  const request = canonicalise(incoming);
  if (isRejection(request)) return refusedAs('refused', request.rejection, '*');
  const planned = plan(request, rules);
  if (isRejection(planned)) return refusedAs('refused', planned.rejection, '*');
  if (!('endpoint' in planned)) return forwardedAs('', question, planned);
  const { name, route } = planned.endpoint.filter;
  // The resolver sends its own request, and forwards the client's if it cannot read the answer.
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
  return { kind, allows: (seen: Seen) => !seen.isReached && seen.rejection === name && seen.route === route };
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
  const ofTags = words('if-match-missing if-match-invalid collection-write resource-busy upstream-timeout');
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
  const socket = net.connect(shopward.port, '127.0.0.1');
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk) => (text += chunk));
  socket.on('error', () => {});
  socket.write(`${question.method} ${question.target} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
  await new Promise<void>((resolve) => socket.once('close', () => resolve()));
  // shopward's own id if it refused the request before it read the fields; a 101 has none.
  const requestId = /^x-request-id: (\S+)/im.exec(text)?.[1] ?? id;
  if (!records.has(requestId)) {
    await expect.poll(() => records.has(requestId), { interval: 2, message: text }).toBe(true);
  }
  const record = records.get(requestId);
  const { route, rejection } = record ?? {};
  return { status: Number(text.slice(9, 12)), isReached: reached.has(id), route, rejection };
}
