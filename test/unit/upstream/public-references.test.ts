import { describe, expect, it } from 'vitest';
import { PublicReferences } from '../../../src/upstream/response-fields.ts';

const request = { host: 'api.shop.example', fields: ['X-Forwarded-Host', 'outer.shop.example'] };
const shop = { hostname: 'shop', port: 9000, path: '' };

type Row = readonly [said: string, told: string];

/** Rows: the value that the shop sends, the value that clients get. */
function table(rows: readonly Row[], references: PublicReferences): void {
  it.each(rows)('%j -> %j', (said, told) => {
    expect(references.toPublic(said, request)).toBe(told);
  });
}

describe('without a public address', () => {
  const references = new PublicReferences({ upstream: shop });
  table(
    [
      ['http://shop:9000/carts/1?x=1#f', '/carts/1?x=1#f'],
      ['HTTPS://SHOP:9000/carts/1', '/carts/1'],
      ['//shop:9000/carts/1', '/carts/1'],
      ['http://user:secret@shop:9000/carts', '/carts'],
      ['http://a@b@shop:9000/carts', '/carts'],
      ['http://shop:9000', '/'],
      ['http://shop:9000?page=2', '/?page=2'],
      ['http://shop:9000#f', '/#f'],
      // The rest must not become an authority.
      ['http://shop:9000//evil.example/x', '/evil.example/x'],
      ['http://shop:9000////evil.example', '/evil.example'],
      ['http://shop:9000/\\evil.example', '/%5Cevil.example'],
      ['http://shop:9000\\evil.example', '/%5Cevil.example'],
      ['http://shop:9000/\u0001/evil.example', '/%01/evil.example'],
      // Browsers drop tabs, so these refer to the shop, too.
      ['http://shop:9000/\t/evil.example', '/evil.example'],
      ['http://shop:9000\t//evil.example', '/evil.example'],
      ['ht\ttp://sh\top:9000/x', '/x'],
      // The URL standard reads these as the shop's address (sections 4.4 and 3.5).
      ['http:\\\\shop:9000\\x', '/%5Cx'],
      ['/\\shop:9000/x', '/x'],
      ['\\/shop:9000/x', '/x'],
      ['///shop:9000/x', '/x'],
      ['http:///shop:9000/x', '/x'],
      ['http:/shop:9000/x', '/x'],
      ['https:shop:9000/x', '/x'],
      [' \u0001http://shop:9000/x', '/x'],
      ['http://%73hop:9000/x', '/x'],
      ['http://\uff53hop:9000/x', '/x'],
      ['http://shop:09000/x', '/x'],
      ['http:/carts/1', 'http:/carts/1'],
      ['http:\\\\evil.example\\x', 'http:\\\\evil.example\\x'],
      [`http://${'a'.repeat(2000)}:9000/x`, `http://${'a'.repeat(2000)}:9000/x`],
      ['http://shop:9000/ /\u00e9', '/%20/%E9'],
      // Other hosts, and references that only look like the shop's.
      ['https://evil.example/shop:9000/', 'https://evil.example/shop:9000/'],
      ['http://shop:9000@evil.example/', 'http://shop:9000@evil.example/'],
      ['http://shop:9000.evil.example/', 'http://shop:9000.evil.example/'],
      ['http://shop.evil.example:9000/', 'http://shop.evil.example:9000/'],
      ['http://shop:9001/', 'http://shop:9001/'],
      ['http://shop/', 'http://shop/'],
      ['ftp://shop:9000/', 'ftp://shop:9000/'],
      ['//evil.example/', '//evil.example/'],
      ['https://api.shop.example/carts/1', 'https://api.shop.example/carts/1'],
      // Relative references.
      ['/carts/1', '/carts/1'],
      ['//', '//'],
      ['carts/1', 'carts/1'],
      ['../carts/1', '../carts/1'],
      ['?page=2', '?page=2'],
      ['', ''],
    ],
    references,
  );

  it('leads no browser to another host, whatever follows the host of the shop', () => {
    const alphabet = ['/', '\\', '\t', '.', '%2f', '%5c', 'evil.example', '?', '#', '@', ':', ' ', '\u0085'];
    let seed = 7;
    const next = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed % below;
    };
    for (let i = 0; i < 20_000; i += 1) {
      const tail = Array.from({ length: next(6) }, () => alphabet[next(alphabet.length)]).join('');
      const told = references.toPublic(`http://shop:9000/${tail}`, request);
      expect(new URL(told, 'https://api.shop.example/a/b').host, JSON.stringify(tail)).toBe(
        'api.shop.example',
      );
    }
  });
});

it('each reference that leads a browser to the shop is rewritten, however it is spelled', () => {
  const references = new PublicReferences({ upstream: { ...shop, hostname: '127.0.0.1' } });
  const schemes = ['', 'http:', 'https:', 'HTTP:', 'ht\ttp:', ' http:', '\u0001'];
  const slashes = ['', '/', '//', '///', '\\', '\\\\', '/\\', '\\/', '/\t/', '\t//'];
  const users = ['', 'a@', 'a:b@', '@', 'evil.example@'];
  const hosts = '127.0.0.1|127.1|2130706433|0x7f.1|%3127.0.0.1|127.0.0.\t1|\uff1127.0.0.1'.split('|');
  const ends = ['', '/x', '\\x', '?x', '#x', '/../x', '//evil.example', '/\\evil.example'];
  let met = 0;
  for (const page of ['http://api.shop.example/a/b', 'https://api.shop.example/a/b'])
    for (const scheme of schemes)
      for (const slash of slashes)
        for (const user of users)
          for (const host of hosts)
            for (const end of ends) {
              const said = `${scheme}${slash}${user}${host}:9000${end}`;
              const told = references.toPublic(said, request);
              const before = URL.parse(said, page);
              const after = URL.parse(told, page);
              if (before?.host === '127.0.0.1:9000') {
                met += 1;
                expect(after?.host, JSON.stringify(said)).toBe('api.shop.example');
              } else expect(after?.host, JSON.stringify(said)).not.toBe('127.0.0.1:9000');
            }
  expect(met).toBeGreaterThan(5000);
});

describe('with a public address', () => {
  table(
    [
      ['http://shop:9000/carts/1', 'https://api.shop.example/carts/1'],
      ['//shop:9000//evil.example', 'https://api.shop.example/evil.example'],
      ['http://shop:9000', 'https://api.shop.example/'],
      ['/carts/1', '/carts/1'],
    ],
    new PublicReferences({ upstream: shop, publicUrl: 'https://api.shop.example' }),
  );
});

describe('the ports of http and https are one', () => {
  const references = new PublicReferences({ upstream: { hostname: '::1', port: 443, path: '' } });
  table(
    [
      ['http://[::1]/x', '/x'],
      ['https://[::1]:443/x', '/x'],
      ['http://[::1]:80/x', '/x'],
      ['https://[::1]:8443/x', 'https://[::1]:8443/x'],
    ],
    references,
  );
});

describe('with a path in front', () => {
  const references = new PublicReferences({ upstream: { ...shop, path: '/api/v2' } });
  table(
    [
      ['http://shop:9000/api/v2/carts/1', '/carts/1'],
      ['http://shop:9000/api/v2', '/'],
      ['http://shop:9000/api/v2?x', '/?x'],
      ['http://shop:9000/api/v2//evil.example', '/evil.example'],
      ['/api/v2/carts/1', '/carts/1'],
      ['/api/v2//evil.example', '/evil.example'],
      ['/api/v2/\\evil.example', '/%5Cevil.example'],
      ['/api/v2', '/'],
      ['/api/v2#/api/v2', '/#/api/v2'],
      // The shop used its public address.
      ['https://api.shop.example/api/v2/carts', 'https://api.shop.example/carts'],
      ['https://api.shop.example:443/api/v2/carts', 'https://api.shop.example:443/carts'],
      ['https://outer.shop.example/api/v2/carts', 'https://outer.shop.example/carts'],
      ['https://other.example/api/v2/carts', 'https://other.example/api/v2/carts'],
      // References outside that path.
      ['http://shop:9000/login', '/login'],
      ['/login', '/login'],
      ['/api/v2x/carts', '/api/v2x/carts'],
      ['/api/v2%2Fcarts', '/api/v2%2Fcarts'],
      ['/API/v2/carts', '/API/v2/carts'],
      ['/api/v2/../admin', '/api/v2/../admin'],
      ['/api/v2/%2E%2e/admin', '/api/v2/%2E%2e/admin'],
      ['/api/v2/..', '/api/v2/..'],
      ['/api/v2/x?back=/../y', '/x?back=/../y'],
      ['carts/1', 'carts/1'],
    ],
    references,
  );
});
