import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { asking } from '../../end-to-end/deploy/front.ts';
import { request } from '../../harness/attack-stage.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { startAskingStage } from '../../unit/authorize/asking-stage.ts';
import { corpusOctets } from '../attacks/corpus-stage/token-less.ts';
import { mutate, mutations, requestOctets } from '../fuzz/arbitraries.ts';
import { sendAll, sendAnswered } from './send-whole.ts';
import { isProtectedToShop, type Understood } from './shop-rule.ts';
import { upstreams } from './upstreams.ts';

const plain = (target: string, fields: string[] = []) =>
  request(`GET ${target}`, ['Connection: close', ...fields]);
let markers = 0;

const attacks = corpusOctets();
const generated = fc.sample(
  fc.tuple(requestOctets, mutations).map(([octets, steps]) => mutate(octets, steps)),
  Number(process.env.DIFFERENTIAL_RUNS ?? 100),
);
const start = upstreams['node:http'];

/**
 * Requests without a valid token, through fronts that ask shopward and forward to the shop themselves. Concurrent: most of
 * the time is the wait for answers to malformed requests.
 */
describe.concurrent('the shop behind a front that asks', { timeout: 900_000 }, () => {
  for (const [name, front] of Object.entries(asking)) {
    it.skipIf(front === undefined || start === undefined)(
      `${name}: the shop reads no attack as a request for a protected resource, and gets only allowed targets`,
      async (context) => {
        if (front === undefined || start === undefined) return;
        const open = closingAtEnd(context);
        const upstream = open(await start());
        const stage = open(await startAskingStage(front, upstream.port, { isPlain: true }));

        /** A slow front may forward an attack later than the marker, so markers are filtered out by their paths. */
        async function understoodWhile(act: () => Promise<unknown>): Promise<Understood[]> {
          const mark = async () => {
            const marker = `/marker-${markers++}`;
            await sendAnswered(upstream.port, plain(marker));
            return upstream.understood(marker);
          };
          const before = (await mark()).length;
          await act();
          return (await mark()).slice(before).filter(({ line }) => !line.startsWith('GET /marker-'));
        }

        const token = `Authorization: Bearer ${stage.shopward.issueToken()}`;
        const served = await understoodWhile(() => sendAnswered(stage.port, plain('/orders', [token])));
        expect(served.filter(isProtectedToShop)).toHaveLength(1);
        for (const [all, some] of [
          [attacks, 40],
          [generated, 5],
        ] as const) {
          const seen = await understoodWhile(() => sendAll(stage.port, all));
          expect(seen.filter(isProtectedToShop)).toEqual([]);
          expect(seen.length).toBeGreaterThan(some);
          const allowed = new Set(
            stage.questions.flatMap(({ status, method, target }) =>
              status === 200 ? `${method} ${target}` : [],
            ),
          );
          // The front asks shopward before it forwards a request.
          const lines = seen.map(({ line }) => line);
          expect(lines.filter((line) => !allowed.has(line))).toEqual([]);
          const asked = await understoodWhile(() => sendAnswered(stage.port, plain('/stores')));
          expect(asked.map(({ line }) => line)).toContain('GET /stores');
        }
      },
    );
  }
});
