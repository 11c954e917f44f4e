import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';
import { type JwksServer, startJwksServer } from '../../unit/access/jwks-server.ts';
import { encode, makeSigner, makeToken, publicJwk, signSegments } from '../../unit/access/signing.ts';

/** Attacks on tokens that the corpus cannot express: they need a second server, the log, or very many spellings. */
const stage = useAttackStage();
const withToken = (token: string) => request('GET /orders', [`Authorization: Bearer ${token}`]);
const refused = (token: string) => stage.refuses(withToken(token), 401, '001');
const now = () => Math.floor(Date.now() / 1000);
const attacker = makeSigner('RS256', 'attacker');
const attackersToken = (header: object, claims: object = {}) =>
  makeToken(attacker, { sub: 'DE--21', iat: now(), exp: now() + 60, ...claims }, header);

/** J3: a token that contains the key to verify it with, or names an address to get it from. */
describe('J3: the header of a token chooses no key', () => {
  let canary: JwksServer;
  beforeAll(async () => {
    canary = await startJwksServer(attacker);
  });
  afterAll(() => canary.close());

  it.each<[string, () => unknown]>([
    ['jwk', () => publicJwk(attacker)],
    ['jku', () => canary.url],
    ['x5u', () => canary.url],
    ['x5c', () => [attacker.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')]],
    ['x5t', () => 'AAAAAAAAAAAAAAAAAAAAAAAAAAA'],
    ['x5t#S256', () => 'A'.repeat(43)],
    ['url', () => canary.url],
    ['iss', () => canary.url],
  ])('401 for a key in the header %s, and no request to its server', async (name, value) => {
    await refused(attackersToken({ [name]: value() }));
    expect(canary.hits).toBe(0);
  });
});

it('J1: 401 for a changed bit in every seventh octet of the payload', async () => {
  const [header = '', payload = '', signature = ''] = stage.shopward.issueToken().split('.');
  const octets = Buffer.from(payload, 'base64url');
  for (let at = 0; at < octets.length; at += 7) {
    const changed = Buffer.from(octets);
    changed[at] = (changed[at] ?? 0) ^ 1;
    await refused(`${header}.${changed.toString('base64url')}.${signature}`);
  }
});

it('J5: 401 for a token within a token that has the signature of the inner one', async () => {
  const inner = stage.shopward.issueToken();
  await refused(`${encode({ alg: 'RS256', cty: 'JWT' })}.${encode(inner)}.${inner.split('.')[2]}`);
});

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** J6: a token has one spelling. Otherwise clients could flood caches and evade lists that are keyed by token. */
describe('J6: other spellings of a good token', () => {
  it('401 for any other last letter of the signature, also if it decodes to the same octets', async () => {
    const token = stage.shopward.issueToken();
    await stage.passes(withToken(token));
    const octetsOf = (text: string) => Buffer.from(text.split('.')[2] ?? '', 'base64url').toString('hex');
    const twins = [...alphabet].map((letter) => token.slice(0, -1) + letter).filter((twin) => twin !== token);
    expect(twins.filter((twin) => octetsOf(twin) === octetsOf(token))).toHaveLength(15);
    for (const twin of twins) await refused(twin);
  });

  it.each(['=', '==', '\t', ' ', '+', '/', '.', '%3D', '\xa0', '%20', ',', '"'])(
    '401 for %j within or after a segment',
    async (more) => {
      const token = stage.shopward.issueToken();
      const middle = token.lastIndexOf('.') + 9;
      await refused(`${token}${more}x`);
      if (!/^[\t ]$/.test(more)) await refused(token + more);
      await refused(token.slice(0, middle) + more + token.slice(middle));
      await refused(token.replace('.', `${more}.`));
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
      if (/[+/=]/.test(spelling)) await refused(spelling);
    }
  });

  it('401 for an unused last bit that is set in a signed header or payload', async () => {
    const { signer } = stage.shopward;
    const segments = stage.shopward.issueToken().split('.').slice(0, 2);
    for (const [i, segment] of segments.entries()) {
      if (segment.length % 4 === 0) continue;
      const last = alphabet.indexOf(segment.at(-1) ?? '');
      const [header = '', payload = ''] = segments.with(i, segment.slice(0, -1) + alphabet[last + 1]);
      await refused(signSegments(signer, header, payload));
    }
  });
});

it('J12: a token in the query of an open route is forwarded, and not logged', async () => {
  const token = stage.shopward.issueToken();
  const { requestLine } = await stage.passes(request(`GET /stores?access_token=${token}`));
  expect(requestLine).toContain(token);
  const line = await stage.shopward.waitForLog(({ path }) => path === '/stores');
  expect(JSON.stringify(line)).not.toContain('access_token');
});

it('J12: a refresh token in a path is cut out of the log', async () => {
  const token = stage.shopward.issueToken();
  await stage.passes(request(`GET /stores/${token}`));
  await stage.demandsToken(request('DELETE /refresh-tokens/c4nary'));
  const line = await stage.shopward.waitForLog(({ route }) => route === '/refresh-tokens/{refresh_token_id}');
  expect(JSON.stringify(line)).not.toContain('c4nary');
});

/** J13: an answer does not tell why a token is bad; the log does. */
it('J13: seven kinds of bad token get the same answer, except for date and request id', async () => {
  const { issueToken } = stage.shopward;
  const bad: Record<string, string> = {
    expired: issueToken({ exp: now() - 60 }),
    'not-before': issueToken({ nbf: now() + 600 }),
    'too-old': issueToken({ iat: now() - 40_000 }),
    signature: attackersToken({ kid: undefined }),
    algorithm: issueToken({}, { alg: 'HS256' }),
    critical: issueToken({}, { crit: ['x'] }),
    malformed: `${issueToken()}.x`,
  };
  const answers = new Set<string>();
  for (const [reason, token] of Object.entries(bad)) {
    const response = await refused(token);
    const fields = response.rawFields.filter(
      (_, i, all) => !/^(date|x-request-id)$/i.test(all[i - (i % 2)] ?? ''),
    );
    answers.add(JSON.stringify([response.reason, fields, response.body.toString()]));
    const id = response.field('x-request-id');
    const line = await stage.shopward.waitForLog(({ requestId }) => requestId === id);
    expect(line.reason).toBe(reason);
  }
  expect(answers.size).toBe(1);
  expect([...answers][0]).not.toMatch(/DE--21|expired|signature/);
});
