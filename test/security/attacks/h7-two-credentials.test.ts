import { describe, expect, it } from 'vitest';
import { bareChallenge, invalidTokenChallenge, request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** `GOOD` is a valid token. The attacks try to give the shop another token than the one that shopward verified. */
const withToken = (field: string) => field.replaceAll('GOOD', stage.shopward.issueToken());

/** H7: the shop splits the field at white space and reads the second word, whatever follows. */
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
  ])('401 for %j', async (value) => {
    const response = await stage.refuses(
      request('GET /orders', [`Authorization: ${withToken(value)}`]),
      401,
      '001',
    );
    // RFC 6750 section 3.1: the challenge has no error code if the request used another scheme.
    const isOther = /^(Basic|Token) /.test(value);
    expect(response.field('www-authenticate')).toBe(isOther ? bareChallenge : invalidTokenChallenge);
  });

  it.each(['', ' ', '\t', '   \t '])('401 for %j, as without the field', async (value) => {
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
  ])('400 for two lines, %j and %j, on a protected and on an open route', async (first, second) => {
    const lines = [`Authorization: ${withToken(first)}`, `authorization: ${withToken(second)}`];
    for (const path of ['/orders', '/stores']) {
      await stage.refuses(request(`GET ${path}`, lines), 400, 'bad-request-fields');
    }
  });

  it.each(['Bearer GOOD', 'bearer GOOD', 'BEARER   GOOD', ' \tBearer GOOD \t'])(
    '%j is forwarded as `Bearer` with the token',
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
  ])('400 for the line %j', async (line) => {
    await stage.refuses(request('GET /orders', [withToken(line)]), 400, 'bad-request');
  });

  it.each([
    'Authorization_',
    'X-Authorization',
    'Authorization-',
    'HTTP_AUTHORIZATION',
    'X-Agent-Authorization',
  ])('401 for a token in the field %s', async (name) => {
    await stage.demandsToken(request('GET /orders', [withToken(`${name}: Bearer GOOD`)]));
  });
});
