import { describe, expect, it } from 'vitest';
import { canonicaliseHost } from '../../../src/http/request-target.ts';

describe('canonicaliseHost', () => {
  it.each([
    ['shop.example', 'shop.example'],
    ['SHOP.Example:8080', 'shop.example:8080'],
    ['shop.example.', 'shop.example.'],
    ['a_b.svc', 'a_b.svc'],
    ['127.0.0.1:1', '127.0.0.1:1'],
    ['localhost:65535', 'localhost:65535'],
    ['[::1]', '[::1]'],
    ['[2001:DB8::a]:443', '[2001:db8::a]:443'],
    ['[1:2:3:4:5:6:7:8]', '[1:2:3:4:5:6:7:8]'],
    ['[1:2:3:4:5:6:7::]', '[1:2:3:4:5:6:7::]'],
    ['[::1234]', '[::1234]'],
    ['a'.repeat(260), 'a'.repeat(260)],
  ])('takes %j', (sent, host) => {
    expect(canonicaliseHost(sent)).toBe(host);
  });

  it.each([
    '',
    ' ',
    'a b',
    'a@b/c?d#e',
    'a@b',
    'a/b',
    'a?b',
    'a#b',
    'a\\b',
    'a,b',
    'a%00b',
    'a..b',
    '.a',
    ':80',
    'a:',
    'a:b',
    'a:0',
    'a:65536',
    'shop:99999',
    'shop:999999',
    'a:80:80',
    '::1',
    '[::1',
    '[]',
    '[::1]x',
    '[::1%25eth0]',
    '[1::2::3]',
    '[1:2:3::4:5:6::7:8]',
    '[1:2:3:4:5:6:7::8]',
    '[1:::2]',
    '[12345::1]',
    '[1::12345]',
    'a'.repeat(261),
    '[1:2:3]',
    '[1:2:3:4:5:6:7:8:9]',
    '[12345::]',
    '[:1]',
    'b\u00fccher.example',
    'http://a',
    `${'a'.repeat(300)}`,
  ])('refuses %j', (sent) => {
    expect(canonicaliseHost(sent)).toBeUndefined();
  });
});
