import { describe, expect, it } from 'vitest';
import { compileProtectedList } from '../../../src/access/packed-list.ts';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';
import { checkSpellings } from '../../../src/cli/verify/access-checks.ts';
import { checkPublishedList } from '../../../src/cli/verify/endpoint-checks.ts';
import type { Probe, Reply } from '../../../src/cli/verify/probe-client.ts';
import { checkTag } from '../../../src/cli/verify/tag-checks.ts';
import type { Verification } from '../../../src/cli/verify/verification.ts';
import { buildRejections } from '../../../src/http/rejection.ts';
import { keys, loadGood } from '../config/config-folder.ts';
import { listOf } from './openapi-sample.ts';

const refusal = {
  status: 401,
  fields: { 'www-authenticate': 'Bearer' },
  body: '{"errors":[{"status":"401","code":"002"}]}',
};
const open = { status: 200, fields: {}, body: '{}' };

/** A verification of a list against a deployment that answers with `answer`. */
async function verificationOf(rows: readonly string[], answer: (probe: Probe) => Reply) {
  const { list } = parseProtectedList(listOf(...rows), 'list.yaml');
  const { config } = await loadGood(keys);
  if (list === undefined) throw new Error('the list is broken');
  const asked: string[] = [];
  const client = {
    ask: async (probe: Probe) => {
      asked.push(probe.path);
      return answer(probe);
    },
    close: () => {},
  };
  const rejections = buildRejections();
  const verification: Verification = {
    ...{ client, config, list, rejections },
    ...{ id: 'none', token: 'token' },
  };
  return { verification, asked, compiled: compileProtectedList(list, config.request) };
}

const areReadsRefused = true;

describe('spellings', () => {
  const rows = ['GET /api/v2/carts', 'GET /api/v2/carts/{id}', 'GET /api/v2/carts/{id}/items'];

  it('vary the name after the prefix of the API', async () => {
    const { verification, asked } = await verificationOf(rows, () => refusal);
    const checks = await checkSpellings(verification, { areReadsRefused });
    expect(checks.filter(({ outcome }) => outcome !== 'ok')).toEqual([]);
    expect(asked).toEqual(
      expect.arrayContaining([
        '/api/v2/CARTS/none',
        '/api/v2/%63arts/none',
        '/api/v2/carts;x=1/none',
        '/api/v2/carts/x/carts/none',
        '/api/v2/carts%2Fnone',
      ]),
    );
  });

  it('fail if one is open', async () => {
    const { verification } = await verificationOf(rows, ({ path }) => (/CARTS/.test(path) ? open : refusal));
    const checks = await checkSpellings(verification, { areReadsRefused });
    const failed = checks.filter(({ outcome }) => outcome === 'failed').map(({ name }) => name);
    expect(failed).toEqual(['GET /api/v2/CARTS/ID']);
  });

  it.each([
    ['GET /carts', true],
    ['ANY /api/**', true],
    ['POST /carts', false],
  ])('of %s: asked: %s', async (row, isAsked) => {
    const { verification, asked } = await verificationOf([row], () => refusal);
    const checks = await checkSpellings(verification, { areReadsRefused });
    expect(checks.some(({ outcome }) => outcome === 'skipped')).toBe(!isAsked);
    expect(asked.length > 0).toBe(isAsked);
  });
});

it('a published list without a row fails, and the row is named', async () => {
  const body = JSON.stringify({ data: [{ id: 'GET /carts', attributes: { scopes: [] } }] });
  const { verification } = await verificationOf(['GET /carts', 'GET /orders'], () => ({ ...open, body }));
  const checks = await checkPublishedList(verification);
  expect(checks).toMatchObject([{ outcome: 'failed', advice: 'not there: GET /orders' }]);
});

describe('entity tags', () => {
  const resource = { member: '/carts/{id}', ifMatch: 'strict' } as Parameters<typeof checkTag>[2];
  const tagged = (etag: string) => ({ status: 200, fields: { etag }, body: '{}' });

  it.each([
    ['"a"', undefined, 'ok'],
    ['W/"a"', undefined, 'failed'],
    ['"a-gzip"', '"a"', 'failed'],
    ['"b"', '"a"', 'failed'],
  ])('%s where %s was sent: %s', (tag, sent, outcome) => {
    expect(checkTag('GET', tagged(tag), resource, sent).outcome).toBe(outcome);
    const lenient = checkTag('GET', tagged(tag), { ...resource, ifMatch: 'lenient' }, sent);
    expect(lenient.outcome).toBe(tag === '"b"' ? 'failed' : 'ok');
  });
});
