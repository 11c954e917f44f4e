import { expect, it } from 'vitest';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { startShopward } from '../../harness/shopward.ts';

it('the log on a terminal: one line per event, no secrets, and the last line is written', async () => {
  const upstream = await startRecordingUpstream(() => answer());
  const shopward = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    // The default on a terminal.
    env: { SHOPWARD_LOG: 'pretty' },
  });
  const ask = (path: string) =>
    exchangeRaw(
      shopward.port,
      `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer c4nary.c4nary.c4nary\r\n\r\n`,
    );
  expect((await ask('/stores?token=c4nary')).status).toBe(200);
  expect((await ask('/orders')).status).toBe(401);
  await shopward.stop();
  await upstream.close();
  const lines = shopward.output().split('\n');
  const found = (pattern: RegExp) => lines.filter((line) => pattern.test(line)).length;
  // A time, a level, the message, then the fields in one line.
  expect(
    found(/^\[\d\d:\d\d:\d\d\] .*INFO.*: .*GET \/stores 200.* \{"requestId":"[^"]+",.*"status":200,/),
  ).toBe(1);
  expect(found(/GET \/orders 401.*"rejection":"access-token-invalid"/)).toBe(1);
  expect(found(/draining.*"why":"SIGTERM"/)).toBe(1);
  expect(shopward.output()).not.toContain('c4nary');
});
