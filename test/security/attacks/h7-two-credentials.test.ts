import { describe, expect, it } from 'vitest';
import { bareChallenge, invalidTokenChallenge, request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** `GOOD` stands for a valid token: what is tried is whether the shop would take another one than was verified. */
const withToken = (field: string) => field.replaceAll('GOOD', stage.shopward.issueToken());

/** H7: the shop splits the field at white space and takes the second word, whatever else there is. */
describe('H7: Authorization', () => {
  it.each([
    ...[
      'Bearer GOOD, Bearer x',
      'Bearer x, Bearer GOOD',
      'Bearer GOOD x',
      'Bearer x GOOD',
      'Bearer GOOD,',
      'Bearer GOOD;',
    ],
    ...[
      'Basic eA==, Bearer GOOD',
      'Basic GOOD',
      'GOOD',
      'BearerGOOD',
      'Bearer\tGOOD',
      'Bearer \tGOOD',
      'Bearer: GOOD',
    ],
    ...[
      'Bearer',
      'Bearer "GOOD"',
      'Bearer token=GOOD',
      'Bearer Bearer GOOD',
      'Token GOOD',
      'Bearer GOOD\tx',
      'Bearer .GOOD',
    ],
    ...[
      'Bearer GOOD.',
      'Bearer GOOD.x',
      'Bearer GOOD=',
      'Bearer GOOD==',
      'Bearer %GOOD',
      'Bearer\xa0GOOD',
      ', Bearer GOOD',
    ],
  ])('%j is refused', async (value) => {
    const response = await stage.refuses(
      request('GET /orders', [`Authorization: ${withToken(value)}`]),
      401,
      '001',
    );
    // RFC 6750 section 3.1: nothing is said of a token where another scheme was tried.
    const isOther = /^(Basic|Token) /.test(value);
    expect(response.field('www-authenticate')).toBe(isOther ? bareChallenge : invalidTokenChallenge);
  });

  it.each(['', ' ', '\t', '   \t '])('%j is none', async (value) => {
    const response = await stage.demandsToken(request('GET /orders', [`Authorization:${value}`]));
    expect(response.field('www-authenticate')).toBe(bareChallenge);
  });

  it.each([
    ['Bearer GOOD', 'Bearer GOOD'],
    ['Bearer x', 'Bearer GOOD'],
    ['Bearer GOOD', 'Bearer x'],
    ['', 'Bearer GOOD'],
    ['Bearer GOOD', ''],
    ['Basic eA==', 'Bearer GOOD'],
  ])('two lines, %j and %j, are refused on any route', async (first, second) => {
    const lines = [`Authorization: ${withToken(first)}`, `authorization: ${withToken(second)}`];
    for (const path of ['/orders', '/stores']) {
      await stage.refuses(request(`GET ${path}`, lines), 400, 'bad-request-fields');
    }
  });

  it.each(['Bearer GOOD', 'bearer GOOD', 'BEARER   GOOD', ' \tBearer GOOD \t'])(
    '%j goes on in its one spelling',
    async (value) => {
      const { fields } = await stage.passes(request('GET /orders', [`AUTHORIZATION:${withToken(value)}`]));
      expect(fields('authorization')).toEqual([expect.stringMatching(/^Bearer [\w-]+\.[\w-]+\.[\w-]+$/)]);
    },
  );

  it.each([
    'Authorization : Bearer GOOD',
    ' Authorization: Bearer GOOD',
    'X: y\r\n Bearer GOOD',
    'Authorization\r\n: Bearer GOOD',
  ])('no line %j', async (line) => {
    await stage.refuses(request('GET /orders', [withToken(line)]), 400, 'bad-request');
  });

  it.each([
    'Authorization_',
    'X-Authorization',
    'Authorization-',
    'HTTP_AUTHORIZATION',
    'X-Agent-Authorization',
  ])('the field %s is another one', async (name) => {
    await stage.demandsToken(request('GET /orders', [withToken(`${name}: Bearer GOOD`)]));
  });
});
