import { expect, it } from 'vitest';
import { makeSigner, makeToken } from '../../unit/access/signing.ts';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** J13: an answer does not tell why a token is bad; the log does. */
it('J13: seven kinds of bad token get the same answer, except for date and request id', async () => {
  const now = Math.floor(Date.now() / 1000);
  const good = stage.shopward.issueToken();
  const bad: Record<string, string> = {
    expired: stage.shopward.issueToken({ exp: now - 60 }),
    'not-before': stage.shopward.issueToken({ nbf: now + 600 }),
    'too-old': stage.shopward.issueToken({ iat: now - 40_000 }),
    signature: makeToken(makeSigner('RS256'), { sub: 'DE--21', iat: now, exp: now + 60 }),
    algorithm: stage.shopward.issueToken({}, { alg: 'HS256' }),
    critical: stage.shopward.issueToken({}, { crit: ['x'] }),
    malformed: `${good}.x`,
  };
  const answers = new Set<string>();
  for (const [reason, token] of Object.entries(bad)) {
    const response = await stage.refuses(
      request('GET /orders', [`Authorization: Bearer ${token}`]),
      401,
      '001',
    );
    const fields = response.rawFields.filter(
      (_, i, all) => !/^(date|x-request-id)$/i.test(all[i - (i % 2)] ?? ''),
    );
    answers.add(JSON.stringify([response.reason, fields, response.body.toString()]));
    const id = response.field('x-request-id');
    const line = await stage.shopward.waitForLog(({ requestId }) => requestId === id);
    expect(line.reason).toBe(reason);
  }
  expect(answers.size).toBe(1);
  expect([...answers][0]).not.toMatch(/DE--21|expired|signature/);
});
