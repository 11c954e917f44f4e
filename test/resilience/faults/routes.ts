import type { Agent } from 'node:http';
import { ask, type Question, type Seen } from './ask.ts';

export const routeNames = [
  'open GET',
  'protected GET',
  'tracked GET',
  'tagged PATCH',
  'child POST',
  'resolver, new URL',
  'resolver, known URL',
  'token exchange',
] as const;
export type RouteName = (typeof routeNames)[number];
export type Cells = Readonly<Record<RouteName, string>>;

/** The answer of each route without a fault. */
export const healthy: Cells = {
  'open GET': '200',
  'protected GET': '200',
  'tracked GET': '200 tagged',
  'tagged PATCH': '200 tagged',
  'child POST': '201 tagged',
  'resolver, new URL': '200 tagged',
  'resolver, known URL': '200 tagged',
  'token exchange': '201',
};

/** Each row has its own ids, so that rows do not affect each other. */
export interface Prepared {
  readonly name: string;
  readonly tag: string | undefined;
}

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
export async function prepare(front: Front, name = nextName()): Promise<Prepared> {
  const [{ tag }] = await Promise.all([
    readTagged(front, name),
    // Asked twice, because the cache stores a URL only at its second request.
    askAs(front, { method: 'GET', path: knownUrl(name) }).then(() =>
      askAs(front, { method: 'GET', path: knownUrl(name) }),
    ),
  ]);
  return { name, tag };
}

/** The read whose answer has the tag that a PATCH needs. */
export function readTagged(front: Front, name = nextName()): Promise<Seen> {
  return askAs(front, { method: 'GET', path: `/carts/${name}-patch` });
}

/** Sends one request of each kind, all at once. */
export async function askAll(front: Front, prepared: Prepared): Promise<Cells> {
  const cells = await Promise.all(
    routeNames.map(async (route) => [route, (await askRoute(front, prepared, route)).words] as const),
  );
  return Object.fromEntries(cells) as unknown as Cells;
}

export function askRoute(front: Front, { name, tag }: Prepared, route: RouteName): Promise<Seen> {
  const ifMatch: Record<string, string> = tag === undefined ? { 'If-Match': '"none"' } : { 'If-Match': tag };
  switch (route) {
    case 'open GET':
      return askAs(front, { method: 'GET', path: `/stores/${name}` });
    case 'protected GET':
      return askAs(front, { method: 'GET', path: `/customers/${name}` });
    case 'tracked GET':
      return askAs(front, { method: 'GET', path: `/carts/${name}-read` });
    case 'tagged PATCH':
      return askAs(front, { method: 'PATCH', path: `/carts/${name}-patch`, fields: ifMatch, body: {} });
    case 'child POST':
      return askAs(front, { method: 'POST', path: `/carts/${name}-child/items`, body: {} });
    case 'resolver, new URL':
      return askAs(front, { method: 'GET', path: `/url-resolver?url=/new-${name}` });
    case 'resolver, known URL':
      return askAs(front, { method: 'GET', path: knownUrl(name) });
    case 'token exchange':
      return askAs(front, { method: 'POST', path: '/refresh-tokens', body: exchangeOf(`old-${name}`) });
  }
}

function askAs({ port, token, agent }: Front, question: Question): Promise<Seen> {
  const fields = { Authorization: `Bearer ${token}`, ...question.fields };
  return ask(port, { ...question, fields }, agent);
}

function knownUrl(name: string): string {
  return `/url-resolver?url=/known-${name}`;
}

function exchangeOf(refreshToken: string): object {
  return { data: { type: 'refresh-tokens', attributes: { refreshToken } } };
}
