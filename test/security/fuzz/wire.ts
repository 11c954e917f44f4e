import assert from 'node:assert/strict';
import fc from 'fast-check';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { type Shopward, startShopward } from '../../harness/shopward.ts';
import { sendWhole } from '../differential/send-whole.ts';
import { isProtectedToShop } from '../differential/shop-rule.ts';
import { mutate, mutations, requestOctets } from './arbitraries.ts';
import { type FuzzTarget, fuzzTarget } from './fuzz-target.ts';

let upstream: RecordingUpstream | undefined;
let shopward: Shopward | undefined;

/** Octets to the real process: no request for a protected resource is forwarded, and the process does not end. */
export const wire: FuzzTarget = fuzzTarget(
  'wire',
  // Several at a time, each on a connection of its own.
  fc.array(
    fc.tuple(requestOctets, mutations).map(([octets, steps]) => mutate(octets, steps)),
    { minLength: 1, maxLength: 12 },
  ),
  async (requests) => {
    assert(upstream !== undefined && shopward !== undefined);
    const { length } = upstream.requestLines;
    const { port } = shopward;
    await Promise.all(requests.map((octets) => sendWhole(port, octets)));
    assert.equal(shopward.exitCode, null, shopward.output().slice(-2000));
    for (const line of upstream.requestLines.slice(length)) {
      const [, method = '', target = ''] = /^([A-Z]+) (\/\S*) HTTP\/1\.1$/.exec(line) ?? [];
      assert(method !== '', `not a request line: ${line}`);
      const [path = ''] = target.split('?', 1);
      assert(!isProtectedToShop({ method, paths: [path], line }), line);
    }
  },
  {
    runs: 40,
    open: async () => {
      upstream = await startRecordingUpstream(({ head }) => answer(head.startsWith('HEAD ') ? '' : 'ok'));
      shopward = await startShopward({ upstream: `http://127.0.0.1:${upstream.port}` });
    },
    close: async () => {
      await upstream?.close();
      await shopward?.stop();
    },
  },
);
