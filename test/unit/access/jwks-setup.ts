import { expect, onTestFinished, type TestContext } from 'vitest';
import { JwksKeySource, type JwksKeySourceOptions } from '../../../src/access/jwks-key-source.ts';
import { TokenVerifier } from '../../../src/access/token-verifier.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { startJwksServer } from './jwks-server.ts';
import { makeSigner, makeToken, type Signer } from './signing.ts';

export const first = makeSigner('ES256', 'first');
export const second = makeSigner('ES256', 'second');

/** A source on a clock and a timer that the test moves. `test`: the context of the test, needed in `describe.concurrent`. */
export async function setUpJwks(
  signers: readonly Signer[],
  options: Partial<JwksKeySourceOptions> = {},
  test: Pick<TestContext, 'onTestFinished'> = { onTestFinished },
) {
  const open = closingAtEnd(test);
  const server = open(await startJwksServer(...signers));
  const clock = { nowMs: 1_700_000_000_000 };
  const timer = { run: () => {}, delayMs: 0 };
  const source = open(
    new JwksKeySource({
      url: server.url,
      algorithms: ['ES256'],
      timeoutMs: 60_000,
      now: () => clock.nowMs,
      monotonicNow: () => clock.nowMs,
      schedule(run, delayMs) {
        Object.assign(timer, { run, delayMs });
        return () => Object.assign(timer, { run: () => {}, delayMs: 0 });
      },
      ...options,
    }),
  );
  const verifier = new TokenVerifier({
    algorithms: ['ES256'],
    keySource: source,
    clockToleranceMs: 0,
    subject: 'sub',
    now: () => clock.nowMs,
  });
  let serial = 0;
  /** Verifies a valid token. Each one is new, so that no earlier verdict answers. */
  const verify = (signer: Signer, kid = signer.kid) =>
    verifier.verify(makeToken(signer, { sub: `${serial++}`, exp: 2_000_000_000 }, { kid }));
  return { server, clock, timer, source, verifier, verify };
}

export const passed = expect.objectContaining({ subject: expect.any(String) });
export function unavailable(retryAfterSeconds: number) {
  return { rejection: 'keys-unavailable', reason: 'keys', retryAfterSeconds };
}
export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
