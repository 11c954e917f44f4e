import { describe, expect, it } from 'vitest';
import { useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage({ config: { upstream: { forwardHost: true } } });

function withHosts(...hosts: string[]): string {
  return `GET /stores HTTP/1.1\r\n${hosts.map((host) => `Host: ${host}\r\n`).join('')}\r\n`;
}

/** H9: Node uses the first of two Host fields, and accepts `a@b/c?d#e`. RFC 9112 section 3.2. */
describe('H9: Host', () => {
  it.each([
    ...[
      [],
      [''],
      ['a', 'a'],
      ['a', 'b'],
      ['', 'a'],
      ['a@b'],
      ['a@b/c?d#e'],
      ['a/b'],
      ['a?b'],
      ['a#b'],
      ['a\\b'],
      ['a b'],
      ['a,b'],
    ],
    ...[
      ['shop:99999'],
      ['shop:0'],
      ['shop:'],
      ['shop:x'],
      ['shop:80:80'],
      [':80'],
      ['.'],
      ['a..b'],
      ['.a'],
      ['%61'],
      ["a'b"],
    ],
    ...[
      ['[::1'],
      ['::1'],
      ['[::1]x'],
      ['[::g]'],
      ['[]'],
      ['[1::2::3]'],
      ['http://shop'],
      ['shop\xe9'],
      ['*'],
      ['[1:2:3]'],
      ['[1:2:3:4:5:6:7:8:9]'],
      ['[1:2:3:4:5:6:7::8]'],
      ['[1:::2]'],
      ['[12345::1]'],
      ['[1::12345]'],
      ['[:1]'],
      ['[::1%25eth0]'],
      ['a\tb'],
      ['x'.repeat(261)],
    ],
  ])('400 for the Host fields %j', async (...hosts) => {
    await stage.refuses(withHosts(...hosts), 400, 'bad-host');
  });

  it.each([
    ['SHOP.example', 'shop.example'],
    ['shop.example.:8080', 'shop.example.:8080'],
    ['[::1]:80', '[::1]:80'],
    ['[1:2:3:4:5:6:7::]', '[1:2:3:4:5:6:7::]'],
    ['x'.repeat(260), 'x'.repeat(260)],
    ['127.0.0.1', '127.0.0.1'],
    ['a_b.example', 'a_b.example'],
  ])('%s is forwarded as %s', async (sent, forwarded) => {
    const { fields } = await stage.passes(withHosts(sent));
    expect(fields('host')).toEqual([forwarded]);
    expect(fields('x-forwarded-host')).toEqual([forwarded]);
  });
});
