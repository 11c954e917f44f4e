import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../harness/attack-stage.ts';
import { exchangeRaw } from '../harness/raw-client.ts';

describe('the admin port on loopback', () => {
  const stage = useAttackStage();
  /** Uses a connection that closes after the answer: `fetch` would keep an idle one open at the end of the file. */
  const ask = (path: string, host = 'localhost') =>
    exchangeRaw(stage.shopward.adminPort, request(`GET ${path}`, [], '', host));

  it('paths, queries and fields of requests add no time series', async () => {
    const series = async () =>
      (await ask('/metrics')).body.toString().match(/^(?:http|shopward)_\w+(?:\{.*\})?(?= )/gm);
    await stage.passes(request('GET /stores/1'));
    await stage.demandsToken(request('GET /orders/1'));
    const before = await series();
    for (let i = 0; i < 50; i += 1) {
      await stage.passes(
        request(`GET /stores/${i}/x-${i}?y=${i}`, [`User-Agent: u-${i}`, `X-Request-Id: r-${i}`]),
      );
      await stage.demandsToken(request(`GET /orders/${i}`, [`Store: s-${i}`]));
    }
    expect(await series()).toEqual(before);
  });
});
