import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Shopward } from '../../harness/shopward.ts';
import budgets from './budget.json' with { type: 'json' };
import { type Cost, measureCosts } from './cost.ts';

/**
 * The regression gate of the hot path: the memory that one request allocates, and the asynchronous work that it starts.
 * Reads no clock, so a busy machine cannot fail it. If a change exceeds a budget on purpose, raise it in `budget.json` in
 * the same commit, and give the reason; lower a budget that is too large. Bytes may exceed theirs by 5 %.
 */
let upstream: Server;
beforeAll(async () => {
  const body = JSON.stringify({ data: { type: 'carts', id: '1', attributes: { filler: 'x'.repeat(300) } } });
  upstream = createServer((request, response) => {
    const answer = request.url?.startsWith('/url-resolver') ? mapping : body;
    response.writeHead(200, { 'Content-Type': 'application/vnd.api+json', 'Content-Length': answer.length });
    response.end(answer);
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
});
afterAll(() => upstream.close());

const mapping = JSON.stringify({
  data: [
    {
      type: 'url-resolver',
      id: null,
      attributes: { entityType: 'abstract-products', entityId: '7' },
      links: { self: '/url-resolver?url=/en/x' },
    },
  ],
});

const get =
  (target: string, withToken: boolean, claims: object = {}) =>
  (shopward: Shopward): string => {
    token ??= withToken ? shopward.issueToken(claims) : undefined;
    const fields = ['Host: api.shop.example', 'Accept: application/vnd.api+json', 'User-Agent: budget'];
    if (withToken) fields.push(`Authorization: Bearer ${token}`);
    return `GET ${target} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`;
  };
let token: string | undefined;

/** The body comes with its head, as in most requests. */
const post = (): string => {
  const fields = ['Host: api.shop.example', 'Accept: application/vnd.api+json', 'User-Agent: budget'];
  const body = JSON.stringify({ data: { type: 'carts', attributes: { name: 'x'.repeat(2_000) } } });
  fields.push('Content-Type: application/json', `Content-Length: ${body.length}`);
  return `POST /abstract-products/1 HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n${body}`;
};

/** Each PATCH names the tag from the previous answer; a read comes first. */
const patch = (shopward: Shopward, tag: string | undefined): string => {
  const read = get('/carts/1', true)(shopward);
  if (tag === undefined) return read;
  const body = JSON.stringify({ data: { type: 'carts', attributes: { name: 'x' } } });
  const fields = `If-Match: ${tag}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  return `${read.replace('GET', 'PATCH').slice(0, -2)}${fields}\r\n\r\n${body}`;
};

const tracked = {
  entityTags: {
    resources: [{ collection: '/carts', member: '/carts/{cart_id}', methods: ['PATCH', 'DELETE'] }],
  },
};

/** Two issuers with the same key; each token names one of them. */
const issuers = ['https://one.example', 'https://two.example'].map((issuer) => ({
  ...{ issuer, keys: { files: ['public.pem'] } },
}));
/** Every feature that is off or without effect by default, enabled for requests other than the measured one. */
const elsewhere = {
  auth: { forward: { subject: 'X-Auth-Subject' }, cookieOrigins: ['https://app.example'] },
  request: { methods: ['SEARCH', 'QUERY'] },
  limits: { routes: [{ path: '/uploads/**', requestBody: '100MiB', responseTimeout: '5s' }] },
  rateLimits: { rows: [{ method: 'POST', path: '/elsewhere', requests: 1, per: '1m', mode: 'enforce' }] },
  refreshTokens: { endpoints: [{ kind: 'revoke', method: 'POST', path: '/oauth/revoke', format: 'form' }] },
};
/** The same features, switched off. */
const off = {
  auth: { forward: {}, cookieOrigins: [] },
  request: { methods: [] },
  limits: { routes: [] },
  rateLimits: false,
  refreshTokens: false,
};

type Case = readonly [keyof typeof budgets, typeof patch, number];
/** A configuration, and the requests that one process measures with it. */
interface Group {
  readonly config: object;
  readonly cases: readonly Case[];
}
const passThrough: Group = {
  config: {},
  cases: [
    ['pass-through GET', get('/abstract-products/1', false), 200],
    ['resolved URL', get('/url-resolver?url=%2Fen%2Fx', false), 200],
  ],
};
const groups: readonly Group[] = [
  passThrough,
  {
    config: { entityTags: false },
    cases: [
      ['pass-through POST', post, 200],
      ['protected GET', get('/carts/1', true), 200],
    ],
  },
  {
    config: tracked,
    cases: [
      ['tracked GET', get('/carts/1', true), 200],
      ['tracked PATCH', patch, 200],
    ],
  },
  {
    config: { entityTags: false, auth: { keys: undefined, issuers } },
    cases: [
      ['protected GET, one of two issuers', get('/carts/1', true, { iss: 'https://two.example' }), 200],
    ],
  },
];

const optionsOf = (config: object) => ({
  upstream: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
  config: { log: { level: 'warn' }, ...config },
});

const measureCases = (config: object, cases: readonly Case[]): Promise<Cost[]> => {
  token = undefined;
  return measureCosts(
    optionsOf(config),
    cases.map(([name, makeRequest, expected]) => {
      return { makeRequest, expected, enoughBytes: mostBytes(budgets[name]) };
    }),
  );
};

const firsts = new Map<Group, Promise<Cost[]>>();
/** The cost of a case in the first process of its group; each group is measured once. */
const firstCost = async (group: Group, one: Case): Promise<Cost> => {
  const costs = firsts.get(group) ?? measureCases(group.config, group.cases);
  firsts.set(group, costs);
  return (await costs)[group.cases.indexOf(one)] as Cost;
};

const rows = groups.flatMap((group) => group.cases.map((one) => [one[0], group, one] as const));

describe('the cost of one request', () => {
  it.each(rows)('%s: within its budget', async (name, group, one) => {
    const budget: Cost = budgets[name];
    let cost = await firstCost(group, one);
    for (let again = 0; again < tries && isOverdrawn(cost, budget); again++) {
      cost = leastOf(cost, (await measureCases(group.config, [one]))[0] as Cost);
    }
    // The message has the whole cost, so that a budget can be set from it.
    expect(overdrawn(cost, budget), `${name}: ${JSON.stringify(cost)}`).toEqual({});
  });

  it('does not grow by a feature that is off, or on for other requests only', async () => {
    const [read] = passThrough.cases as readonly [Case];
    const [, makeRequest, expected] = read;
    const measure = async (config: object, base?: Cost) => {
      const enoughBytes = base && mostBytes(base);
      const [cost] = await measureCosts(optionsOf(config), [{ makeRequest, expected, enoughBytes }]);
      return cost as Cost;
    };
    let base = await measure(off);
    const firstLooks: readonly (readonly [object, Cost])[] = [
      [passThrough.config, await firstCost(passThrough, read)],
      [elsewhere, await measure(elsewhere, base)],
    ];
    for (const [config, first] of firstLooks) {
      let cost = first;
      for (let again = 0; again < tries && isOverdrawn(cost, base); again++) {
        base = leastOf(base, await measure(off));
        cost = leastOf(cost, await measure(config, base));
      }
      expect(overdrawn(cost, base), JSON.stringify({ base, cost })).toEqual({});
    }
  });
});

/** Processes differ by up to 3 %: a real excess shows in each of several. */
const tries = 6;
function leastOf(one: Cost, other: Cost): Cost {
  const least = (key: keyof Cost) => Math.min(one[key], other[key]);
  const [bytes, promises, timers] = [least('bytes'), least('promises'), least('timers')];
  return { bytes, promises, timers, immediates: least('immediates'), ticks: least('ticks') };
}

function isOverdrawn(cost: Cost, budget: Cost): boolean {
  return Object.keys(overdrawn(cost, budget)).length > 0;
}

/** The entries of `cost` that exceed their budget. */
function overdrawn(cost: Cost, budget: Cost): Partial<Cost> {
  const isOver = (key: keyof Cost) => cost[key] > (key === 'bytes' ? mostBytes(budget) : budget[key]);
  const keys = (Object.keys(budget) as (keyof Cost)[]).filter(isOver);
  return Object.fromEntries(keys.map((key) => [key, cost[key]]));
}

function mostBytes({ bytes }: Cost): number {
  return bytes * 1.05;
}
