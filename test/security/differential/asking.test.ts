import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { asking } from '../../end-to-end/deploy/front.ts';
import { request } from '../../harness/attack-stage.ts';
import { type AskingStage, startAskingStage } from '../../unit/authorize/asking-stage.ts';
import { corpusOctets } from '../attacks/corpus-stage/token-less.ts';
import { mutate, mutations, requestOctets } from '../fuzz/arbitraries.ts';
import { sendAll, sendAnswered } from './send-whole.ts';
import { isProtectedToShop, type Understood } from './shop-rule.ts';
import { type Understanding, upstreams } from './upstreams.ts';

const plain = (target: string, fields: string[] = []) =>
  request(`GET ${target}`, ['Connection: close', ...fields]);
let markers = 0;

const attacks = corpusOctets();
const generated = fc.sample(
  fc.tuple(requestOctets, mutations).map(([octets, steps]) => mutate(octets, steps)),
  Number(process.env.DIFFERENTIAL_RUNS ?? 100),
);

/** Requests without a valid token, through fronts that ask shopward and forward to the shop themselves. */
const start = upstreams['node:http'];
describe.each(Object.entries(asking))('%s in front of the shop', (_, front) => {
  describe.skipIf(front === undefined || start === undefined)('asks', () => {
    let upstream: Understanding;
    let stage: AskingStage;
    beforeAll(async () => {
      if (front === undefined || start === undefined) return;
      upstream = await start();
      stage = await startAskingStage(front, upstream.port);
    });
    afterAll(async () => {
      await stage?.close();
      await upstream?.close();
    });

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

    it('the shop sees a protected request with a token', async () => {
      const token = `Authorization: Bearer ${stage.shopward.issueToken()}`;
      const seen = await understoodWhile(() => sendAnswered(stage.port, plain('/orders', [token])));
      expect(seen.filter(isProtectedToShop)).toHaveLength(1);
    });

    it.each([
      ['attack of the corpus', attacks, 40],
      ['generated request', generated, 5],
    ] as const)(
      'the shop gets no %s for a protected resource, or with a target that shopward did not allow',
      async (_, all, some) => {
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
      },
    );
  });
});
