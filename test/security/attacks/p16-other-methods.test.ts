import { METHODS } from 'node:http';
import { expect, it } from 'vitest';
import { methods } from '../../../src/http/canonical-request.ts';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();
const others = METHODS.filter((method) => method !== 'CONNECT' && !methods.some((ours) => ours === method));

/** P16: TRACE echoes the token, and no row names PROPFIND. */
it.each(others)('P16: 405 for %s', async (method) => {
  for (const path of ['/orders', '/stores']) {
    const response = await stage.refuses(request(`${method} ${path}`), 405, 'method-not-allowed');
    expect(response.fields('allow')).toEqual([methods.join(', ')]);
    expect(response.fields('x-request-id')).toEqual([expect.stringMatching(/^[\w-]{36}$/)]);
  }
});

it.each(['get', 'Get', 'GETS', 'G', 'FOO', 'X-GET', 'POST2', 'ANY', '_GET', 'GET\xa0'])(
  'P16: 405 for %s, which is not a method',
  async (method) => {
    await stage.refuses(request(`${method} /stores`), 405, 'method-not-allowed');
  },
);
