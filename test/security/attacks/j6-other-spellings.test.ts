import { describe, expect, it } from 'vitest';
import { encode, signSegments } from '../../unit/access/signing.ts';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();
const withToken = (token: string) => request('GET /orders', [`Authorization: Bearer ${token}`]);
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** J6: a token has one spelling. Otherwise clients could flood caches and evade lists that are keyed by token. */
describe('J6: other spellings of a good token', () => {
  it('401 for any other last letter of the signature, also if it decodes to the same octets', async () => {
    const token = stage.shopward.issueToken();
    await stage.passes(withToken(token));
    const octets = Buffer.from(token.split('.')[2] ?? '', 'base64url').toString('hex');
    const twins = [...alphabet].map((letter) => token.slice(0, -1) + letter).filter((twin) => twin !== token);
    const same = twins.filter(
      (twin) => Buffer.from(twin.split('.')[2] ?? '', 'base64url').toString('hex') === octets,
    );
    expect(same).toHaveLength(15);
    for (const twin of twins) await stage.refuses(withToken(twin), 401, '001');
  });

  it.each(['=', '==', '\t', ' ', '+', '/', '.', '%3D', '\xa0', '%20', ',', '"'])(
    '401 for %j within or after a segment',
    async (more) => {
      const token = stage.shopward.issueToken();
      const middle = token.lastIndexOf('.') + 9;
      const behind = stage.refuses(withToken(`${token}${more}x`), 401, '001');
      await behind;
      if (!/^[\t ]$/.test(more)) await stage.refuses(withToken(token + more), 401, '001');
      await stage.refuses(withToken(token.slice(0, middle) + more + token.slice(middle)), 401, '001');
      await stage.refuses(withToken(token.replace('.', `${more}.`)), 401, '001');
    },
  );

  it('401 for base64 instead of base64url', async () => {
    const { signer } = stage.shopward;
    const [header = '', payload = ''] = stage.shopward.issueToken({ name: '>>>???' }).split('.');
    const other = (text: string) => text.replaceAll('-', '+').replaceAll('_', '/');
    const padded = (text: string) => text.padEnd(Math.ceil(text.length / 4) * 4, '=');
    for (const spelling of [
      signSegments(signer, header, padded(other(payload))),
      signSegments(signer, padded(encode({ typ: 'JWT', alg: 'RS256', x: 'ab' })), `${payload}=`),
      other(signSegments(signer, header, payload)),
    ]) {
      if (/[+/=]/.test(spelling)) await stage.refuses(withToken(spelling), 401, '001');
    }
  });

  it('401 for an unused last bit that is set in a signed header or payload', async () => {
    const { signer } = stage.shopward;
    const [header = '', payload = ''] = stage.shopward.issueToken().split('.');
    for (const [one, other] of [
      [header, payload],
      [payload, header],
    ] as const) {
      if (one.length % 4 === 0) continue;
      const last = alphabet.indexOf(one.at(-1) ?? '');
      const loose = one.slice(0, -1) + alphabet[last + 1];
      const token = one === header ? signSegments(signer, loose, other) : signSegments(signer, other, loose);
      await stage.refuses(withToken(token), 401, '001');
    }
  });
});
