import { afterEach, expect, test } from 'vitest';
import { UpstreamTls, verification } from '../../src/upstream/connection.ts';

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

test.each([
  ['shop.internal', 'shop.internal'],
  ['192.0.2.1', ''],
  ['2001:db8::a', ''],
])('the certificate of %s is checked against the server name %j', (hostname, servername) => {
  const upstream = { scheme: 'https', hostname, port: 443 } as const;
  expect(verification({ upstream, tls: undefined })).toEqual({ rejectUnauthorized: true, servername });
  const named = new UpstreamTls('shop.example');
  expect(verification({ upstream, tls: named })).toMatchObject({ servername: 'shop.example' });
  expect(verification({ upstream, tls: new UpstreamTls(undefined) })).toMatchObject({ servername });
});
