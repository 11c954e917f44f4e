import type { Agent } from 'node:http';
import { ask, type Question, type Seen } from './ask.ts';

/** The answer of each route without a fault. */
export const healthy = {
  'open GET': '200',
  'protected GET': '200',
  'tracked GET': '200 tagged',
  'tagged PATCH': '200 tagged',
  'child POST': '201 tagged',
  'resolver, new URL': '200 tagged',
  'resolver, known URL': '200 tagged',
  'token exchange': '201',
};
export type RouteName = keyof typeof healthy;
export type Cells = Readonly<Record<RouteName, string>>;
export const routeNames = Object.keys(healthy) as RouteName[];

/** Each row has its own ids, so that rows do not affect each other. */
export type Prepared = Awaited<ReturnType<typeof prepare>>;

let rows = 0;
const nextName = () => {
  rows += 1;
  return `r${rows}`;
};

export interface Front {
  readonly port: number;
  readonly token: string;
  /** Keeps connections open. */
  readonly agent?: Agent;
}

/** Reads the tag that a PATCH needs, and makes a URL known; to be called before the fault. */
export async function prepare(front: Front, name = nextName()) {
  const [{ tag }] = await Promise.all([
    readTagged(front, name),
    // Asked twice, because the cache stores a URL only at its second request.
    askAs(front, get(knownUrl(name))).then(() => askAs(front, get(knownUrl(name)))),
  ]);
  return { name, tag };
}

/** The read whose answer has the tag that a PATCH needs. */
export function readTagged(front: Front, name = nextName()): Promise<Seen> {
  return askAs(front, get(`/carts/${name}-patch`));
}

/** Sends one request of each kind, all at once. */
export async function askAll(front: Front, prepared: Prepared): Promise<Cells> {
  const cells = await Promise.all(
    routeNames.map(async (route) => [route, (await askRoute(front, prepared, route)).words] as const),
  );
  return Object.fromEntries(cells) as unknown as Cells;
}

const get = (path: string): Question => ({ method: 'GET', path });
const questions: Readonly<Record<RouteName, (prepared: Prepared) => Question>> = {
  'open GET': ({ name }) => get(`/stores/${name}`),
  'protected GET': ({ name }) => get(`/customers/${name}`),
  'tracked GET': ({ name }) => get(`/carts/${name}-read`),
  'tagged PATCH': ({ name, tag = '"none"' }) => ({
    method: 'PATCH',
    path: `/carts/${name}-patch`,
    fields: { 'If-Match': tag },
    body: {},
  }),
  'child POST': ({ name }) => ({ method: 'POST', path: `/carts/${name}-child/items`, body: {} }),
  'resolver, new URL': ({ name }) => get(`/url-resolver?url=/new-${name}`),
  'resolver, known URL': ({ name }) => get(knownUrl(name)),
  'token exchange': ({ name }) => ({
    method: 'POST',
    path: '/refresh-tokens',
    body: { data: { type: 'refresh-tokens', attributes: { refreshToken: `old-${name}` } } },
  }),
};

export function askRoute(front: Front, prepared: Prepared, route: RouteName): Promise<Seen> {
  return askAs(front, questions[route](prepared));
}

function askAs({ port, token, agent }: Front, question: Question): Promise<Seen> {
  const fields = { Authorization: `Bearer ${token}`, ...question.fields };
  return ask(port, { ...question, fields }, agent);
}

function knownUrl(name: string): string {
  return `/url-resolver?url=/known-${name}`;
}
