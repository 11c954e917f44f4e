import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';
import { createKeptClient } from '../../harness/kept-client.ts';
import { encode } from '../../unit/access/signing.ts';

const stage = useAttackStage({ config: { limits: { inFlight: 100, clientShare: 100 } } });

/** J15: each token costs a signature check. A flood of bad tokens must not lock out clients with good ones. */
it('J15: 200 for 50 requests with a good token during a flood of bad ones', async () => {
  const good = stage.shopward.issueToken();
  const header = encode({ typ: 'JWT', alg: 'RS256' });
  const clients = Array.from({ length: 40 }, () => createKeptClient(stage.port));
  const flood = clients.map(async (client, n) => {
    for (let i = 0; i < 50; i += 1) {
      const token = `${header}.${encode({ sub: `${n}-${i}`, pad: 'x'.repeat(3000) })}.${'A'.repeat(342)}`;
      const { status } = await client.exchange(request('GET /orders', [`Authorization: Bearer ${token}`]));
      expect(status).toBe(401);
    }
    client.close();
  });
  const honest = createKeptClient(stage.port);
  for (let i = 0; i < 50; i += 1) {
    expect((await honest.exchange(request('GET /orders', [`Authorization: Bearer ${good}`]))).status).toBe(
      200,
    );
  }
  honest.close();
  await Promise.all(flood);
  expect(stage.upstream.bytes()).not.toContain('AAAAAAAA');
});
