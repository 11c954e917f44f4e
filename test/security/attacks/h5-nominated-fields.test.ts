import { describe, expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();

/** H5: `Connection` names fields that the next hop removes. Traefik CVE-2024-45410. */
describe('H5: Connection: <field>', () => {
  it.each([
    ...['Authorization', 'authorization', 'Host', 'Cookie', 'Origin', 'Range', 'Expect', 'Transfer-Encoding'],
    ...[
      'Content-Length',
      'Content-Type',
      'Content-Encoding',
      'If-Match',
      'If-None-Match',
      'Accept',
      'Accept-Language',
    ],
  ])('400 when it names %s', async (name) => {
    const options = [
      name,
      `close, ${name}`,
      `keep-alive,x-a ,\t${name.toUpperCase()}`,
      `${name},`,
      `,,${name}`,
    ];
    for (const option of options) {
      await stage.refuses(request('GET /stores', [`Connection: ${option}`]), 400, 'bad-request-fields');
    }
    const lines = ['Connection: keep-alive', `Connection: ${name}`];
    await stage.refuses(request('DELETE /stores', lines), 400, 'bad-request-fields');
  });

  it.each([
    'X-Forwarded-For',
    'X-Forwarded-Proto',
    'X-Forwarded-Host',
    'X-Request-Id',
    'x-forwarded-for, X-REQUEST-ID',
  ])('the fields that the proxy adds stay when it names %s', async (names) => {
    const { fields } = await stage.passes(request('GET /stores', [`Connection: close, ${names}`]));
    expect(fields('x-forwarded-for')).toEqual(['127.0.0.1']);
    expect(fields('x-forwarded-proto')).toEqual(['http']);
    expect(fields('x-forwarded-host')).toEqual(['shop.example']);
    expect(fields('x-request-id')).toHaveLength(1);
  });

  it('any other field that it names is removed, and its names are not forwarded', async () => {
    const sent = ['Connection: X-User, store', 'X-User: admin', 'x-user: root', 'Store: DE', 'X-Other: 1'];
    const { head, fields } = await stage.passes(request('GET /stores', sent));
    expect(head).not.toMatch(/admin|root|store: DE|x-user/i);
    expect(fields('x-other')).toEqual(['1']);
  });
});
