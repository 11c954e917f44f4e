import { describe, expect, it } from 'vitest';
import { encode } from '../../unit/access/signing.ts';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();
const withToken = (token: string) => request('GET /orders', [`Authorization: Bearer ${token}`]);

/** J1: tokens whose header names no signature algorithm, and tokens with a missing or wrong signature. */
describe('J1: unsigned tokens', () => {
  const algorithms = [
    'none',
    'None',
    'NONE',
    'nOnE',
    'none ',
    '',
    null,
    undefined,
    0,
    ['none'],
    { alg: 'RS256' },
  ];
  it.each(algorithms.map((alg) => ({ alg })))('401 for the header %j', async ({ alg }) => {
    const [, payload = '', signature = ''] = stage.shopward.issueToken().split('.');
    const header = encode({ typ: 'JWT', alg });
    for (const rest of [`${payload}.`, payload, `${payload}.${signature}`, `${payload}.AA`]) {
      await stage.refuses(withToken(`${header}.${rest}`), 401, '001');
    }
  });

  it('401 for a good token without its signature, or with a part of it', async () => {
    const token = stage.shopward.issueToken();
    const [header = '', payload = '', signature = ''] = token.split('.');
    await stage.passes(withToken(token));
    for (const bad of [
      ...[
        `${header}.${payload}.`,
        `${header}.${payload}`,
        `${header}..${signature}`,
        `.${payload}.${signature}`,
        '..',
      ],
      ...[
        `${header}.${payload}.${signature.slice(0, -4)}`,
        `${header}.${payload}.${signature}AAAA`,
        header,
        `${token}.`,
      ],
    ]) {
      await stage.refuses(withToken(bad), 401, '001');
    }
  });

  it('401 for the signature of another token', async () => {
    const [, , signature] = stage.shopward.issueToken().split('.');
    const [header, payload] = stage.shopward.issueToken({ sub: 'DE--1' }).split('.');
    await stage.refuses(withToken(`${header}.${payload}.${signature}`), 401, '001');
  });

  it('401 for a changed bit in every seventh octet of the payload', async () => {
    const [header = '', payload = '', signature = ''] = stage.shopward.issueToken().split('.');
    const octets = Buffer.from(payload, 'base64url');
    for (let at = 0; at < octets.length; at += 7) {
      const changed = Buffer.from(octets);
      changed[at] = (changed[at] ?? 0) ^ 1;
      const token = `${header}.${changed.toString('base64url')}.${signature}`;
      expect((await stage.refuses(withToken(token), 401, '001')).status).toBe(401);
    }
  });
});
