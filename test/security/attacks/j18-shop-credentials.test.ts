import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const basic = (pair: string) => `Authorization: Basic ${Buffer.from(pair).toString('base64')}`;

/** J18: where the shop checks the credentials, a request must still have some. */
describe('J18: `credentials: shop`', () => {
  const stage = useAttackStage({
    rows: [
      { match: 'GET /session', credentials: 'shop' },
      { match: 'POST /session/{id}', credentials: 'shop' },
      { match: 'GET /both/{id}', credentials: 'shop' },
      'GET /both/{id}/**',
      { match: 'GET /query', credentials: 'shop', tokenIn: 'query:access_token' },
      'GET /token',
    ],
    config: { auth: { sessionCookies: ['connect.sid', 'SESSION'] } },
  });
  const line = 'GET /session';

  it.each([
    ['a session cookie', ['Cookie: connect.sid=s%3Aabc']],
    ['a session cookie among others', ['Cookie: a=b; SESSION=1; AMCV_1%40AdobeOrg=x']],
    ['a user and a password', [basic('user:password')]],
    ['an API key as user', [basic('sk_live_1:')]],
    ['the scheme in another case', [basic('user:password').replace('Basic', 'bASIC')]],
    ['a password and a session cookie', [basic('user:password'), 'Cookie: SESSION=1']],
  ])('%s passes unchanged', async (_, fields) => {
    const { head } = await stage.passes(request(line, fields));
    for (const field of fields) expect(head).toContain(field);
  });

  it.each([
    ['nothing', []],
    ['an empty field', ['Authorization:']],
    ['an empty cookie', ['Cookie: SESSION=']],
    ['a quoted empty cookie', ['Cookie: SESSION=""']],
    ['a cookie without a value', ['Cookie: SESSION']],
    ['another cookie', ['Cookie: sid=1; connect=2; XSESSION=3']],
    ['an empty field and another cookie', ['Authorization: ', 'Cookie: sid=1']],
    ['a cookie in a field of another name', ['Cookie2: SESSION=1', 'X-Cookie: SESSION=1']],
    ['a parameter', ['X-Session: 1']],
  ])('401 for %s', async (_, fields) => {
    const response = await stage.refuses(
      request(line, fields),
      401,
      fields.some(isOddCookie) ? '001' : '002',
    );
    expect(response.field('www-authenticate')).toContain('Bearer');
  });

  it.each([
    ['a cookie in another case', ['Cookie: session=1']],
    ['a cookie with a dot as _', ['Cookie: connect_sid=1']],
    ['a cookie with an escaped name', ['Cookie: S%45SSION=1']],
    ['a cookie twice', ['Cookie: SESSION=1; SESSION=2']],
    ['a cookie in two fields', ['Cookie: SESSION=1', 'Cookie: SESSION=2']],
    ['a cookie and its look-alike', ['Cookie: SESSION=1; Session=2']],
    ['Basic without credentials', ['Authorization: Basic']],
    ['Basic with an empty pair', [basic(':')]],
    ['Basic without a colon', [basic('user')]],
    ['Basic with more behind it', [`${basic('user:password')} x`]],
    ['Basic that is not base64', ['Authorization: Basic us:er']],
    ['two pairs in one field', [`${basic('a:b')}, Basic eDp5`]],
    ['Digest', ['Authorization: Digest username="a"', 'Cookie: SESSION=1']],
    ['Negotiate', ['Authorization: Negotiate YII=']],
    ['a bad token', ['Authorization: Bearer a.b.c']],
    ['a bad token beside a cookie', ['Authorization: Bearer a.b.c', 'Cookie: SESSION=1']],
    ['a bare token', ['Authorization: abc', 'Cookie: SESSION=1']],
  ])('401 with code 001 for %s', async (_, fields) => {
    await stage.refuses(request(line, fields), 401, '001');
  });

  it('400 for two Authorization fields', async () => {
    for (const other of ['Bearer a.b.c', 'Basic eDp5', ''])
      await stage.refuses(
        request(line, [basic('user:password'), `Authorization: ${other}`]),
        400,
        'bad-request-fields',
      );
  });

  it('a valid bearer token passes', async () => {
    await stage.passes(request(line, [`Authorization: Bearer ${stage.shopward.issueToken()}`]));
  });

  it('401 for a bearer token in a field where the row accepts one in the query only', async () => {
    const token = `Authorization: Bearer ${stage.shopward.issueToken()}`;
    await stage.refuses(request('GET /query', [token, 'Cookie: SESSION=1']), 401, '002');
    await stage.passes(request('GET /query', ['Cookie: SESSION=1']));
  });

  it('401 without a token where another row of the path requires one', async () => {
    for (const path of ['/both/1', '/token', '/Both/1', '/token/'])
      await stage.refuses(request(`GET ${path}`, [basic('user:password')]), 401, '001');
    await stage.demandsToken(request('GET /both/1', ['Cookie: SESSION=1']));
  });

  it('the row covers other spellings of its path', async () => {
    for (const path of ['/Session', '//session/', '/v1/session', '/session.jsonapi', '/x/y/session'])
      await stage.refuses(request(`GET ${path}`), 401, '002');
    await stage.passes(request('GET /Session', ['Cookie: SESSION=1']));
  });

  it('an answer has `Cache-Control: private` and `Vary: Cookie`', async () => {
    const { response } = await stage.passes(request(line, ['Cookie: SESSION=1']));
    expect([response.field('cache-control'), response.field('vary')]).toEqual(['private', 'Cookie']);
  });
});

/** A cookie without `=` counts as malformed: code 001, where the others get 002. */
function isOddCookie(field: string): boolean {
  return field === 'Cookie: SESSION';
}
