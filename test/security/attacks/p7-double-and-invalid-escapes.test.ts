import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** P7: decoders differ. Some refuse, repair or decode twice what others leave as it is. */
describe('P7: escapes', () => {
  it.each([
    ...['%', '%z', '%zz', '%1', '%1g', '%%32%65', '%u002e', '%u006frders', 'orders%'],
    ...['%252e', '%252f', '%2572', '%25%36%66rders', '%2500', 'a%252Fb'],
    // Overlong forms, surrogates, invalid UTF-8.
    ...[
      '%c0%ae',
      '%c0%af',
      '%e0%80%af',
      '%f0%80%80%af',
      '%ff',
      '%fe',
      '%80',
      '%c3',
      '%ed%a0%80',
      '%f4%90%80%80',
    ],
    ...[
      '%00',
      'orders%00',
      'orders%00.json',
      '.%00.',
      '%0a',
      'orders%0a',
      '%0d',
      '%0d%0aX:%20y',
      '%09',
      'orders%09',
    ],
    ...['%1f', '%7f', 'orders%7F', '%c2%80', '%c2%85', '%c2%9f'],
  ])('400 for %s', async (segment) => {
    await stage.refuses(request(`GET /${segment}`), 400, 'bad-request-target');
    await stage.refuses(request(`GET /stores/${segment}/x`), 400, 'bad-request-target');
  });

  it.each(['é', '\xa0', '\xff', '\x80', 'orders\xc3\xa9'])('400 for the raw octets %j', async (segment) => {
    await stage.refuses(request(`GET /${segment}`), 400, 'bad-request-target');
  });

  it.each(['\0', '\x01', '\t', '\x7f'])('400 for a raw %j', async (octet) => {
    await stage.refuses(request(`GET /orders${octet}`), 400, 'bad-request-target');
  });

  it.each([
    ['/%c3%a9', '/%C3%A9'],
    ['/a%2bb', '/a%2Bb'],
    ['/50%25', '/50%25'],
    ['/%25g', '/%25g'],
    ['/stores?q=%zz%25%00%ff', '/stores?q=%zz%25%00%ff'],
  ])('%s is forwarded as %s', async (target, forwarded) => {
    expect((await stage.passes(request(`GET ${target}`))).requestLine).toBe(`GET ${forwarded} HTTP/1.1`);
  });
});
