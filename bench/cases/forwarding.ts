import type { BenchCase, Target } from '../case.ts';
import type { Contestant } from '../contestants.ts';
import type { LoadRequest } from '../load.ts';
import type { Entry } from '../measure.ts';
import { bearers, get, type Stage } from '../stage.ts';

const passThrough = (ofFastify: number, ofNginx: number): readonly Target[] => [
  { row: 'shopward', against: '@fastify/http-proxy', of: 'cpu', most: ofFastify },
  { row: 'shopward', against: 'nginx', of: 'cpu', most: ofNginx },
  { row: 'shopward', against: 'bare http-proxy-3', of: 'cpu', most: 0.45 },
  { row: 'shopward', against: 'tuned http-proxy-3', of: 'cpu', most: 0.45 },
];
const withoutKeepAlive: Target = {
  row: 'shopward',
  against: 'http-proxy-3 by default',
  of: 'cpu',
  most: 0.45,
};
const tailOfNginx: Target = { row: 'shopward', against: 'nginx', of: 'p99', most: 1.5 };
const memory: Target = { row: 'shopward', against: '', of: 'peak', most: 120 };
const costOfHaproxy: Target = { row: 'shopward', against: 'HAProxy', of: 'cpu', most: 0.75 };

/** Forwarded requests, open or with a token. */
export function forwardingCases(stage: Stage): BenchCase[] {
  const everybody = (request: LoadRequest) => async () => entriesOf(await stage.everybody(), request);
  const post: LoadRequest = {
    ...get('/small', { 'Content-Type': 'application/json' }),
    method: 'POST',
    body: JSON.stringify({ filler: 'x'.repeat(2000) }),
  };
  const withTokens = (count: number) => async (): Promise<LoadRequest> => ({
    ...get('/orders/1'),
    authorizations: await bearers(count),
  });
  const verifying = async () => [await stage.shopward(), await stage.fastify(), await stage.haproxy()];
  return [
    {
      name: 'pass-through GET 0.4 KB',
      targets: [...passThrough(0.55, 2), withoutKeepAlive, tailOfNginx, memory],
      prepare: async () =>
        entriesOf([...(await stage.everybody()), await stage.httpProxy3('defaults')], get('/small')),
    },
    { name: 'pass-through GET 100 KB', targets: passThrough(0.7, 0.8), prepare: everybody(get('/large')) },
    { name: 'pass-through POST 2 KB', targets: passThrough(0.55, 2), prepare: everybody(post) },
    {
      name: 'pass-through GET 0.4 KB, many connections',
      connections: 1000,
      prepare: async () =>
        entriesOf(
          [await stage.shopward(), await stage.fastify(), await stage.nginx(), await stage.haproxy()],
          get('/small'),
        ),
    },
    {
      name: 'protected GET, 1 token',
      targets: [costOfHaproxy],
      prepare: async () => entriesOf(await verifying(), await withTokens(1)()),
    },
    {
      name: 'protected GET, 10,000 tokens',
      targets: [costOfHaproxy],
      prepare: async () => entriesOf(await verifying(), await withTokens(10_000)()),
    },
  ];
}

function entriesOf(who: readonly (Contestant | undefined)[], request: LoadRequest) {
  const entries = who.flatMap((contestant): Entry[] => (contestant ? [{ contestant, request }] : []));
  const missing = who.length - entries.length;
  return { entries, leftOut: missing === 0 ? [] : [`${missing} of nginx and HAProxy: not available here`] };
}
