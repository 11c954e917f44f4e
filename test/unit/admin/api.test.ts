import { rename, rm, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { listOf, type RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';

interface Row {
  readonly id: string;
  readonly requests: number;
  readonly refusals: Readonly<Record<string, number>>;
  readonly observed: Readonly<Record<string, number>>;
  readonly lastSeenMs: number | null;
  readonly line: number;
}

interface State {
  readonly nowMs: number;
  readonly startedMs: number;
  readonly reasons: readonly string[];
  readonly problems: readonly object[];
  readonly list: { readonly rows: number };
  readonly drift: { readonly unlisted: readonly { readonly lastSeenMs: number; readonly passed: number }[] };
  readonly parts: readonly { readonly id: string; readonly status: string }[];
}

/** Fields of an answer to a POST. */
interface Reply {
  readonly error: string;
  readonly verdict: string;
  readonly text: readonly string[];
}

/** The JSON API of a real proxy, over its sockets. */
describe('the admin API', () => {
  let upstream: RecordingUpstream;
  let shopward: RunningShopward;
  let status: string;

  const rows = [
    'GET /carts/{cart_id}',
    'ANY /orders/**',
    { match: 'GET /reports', observe: true },
    'GET /never',
  ];
  beforeAll(async () => {
    upstream = await startRecordingUpstream(() => answer('ok', '', status));
    shopward = await startShopwardHere({ upstream: `http://127.0.0.1:${upstream.port}`, rows });
  });
  afterAll(async () => {
    await shopward?.stop();
    await upstream?.close();
  });
  beforeEach(() => {
    status = '200 OK';
  });

  const get = async <T>(path: string) => {
    const response = await fetch(`${shopward.adminUrl}${path}`);
    expect(response.headers.get('content-type')).toBe('application/json');
    return (await response.json()) as T;
  };
  const post = async (path: string, body: unknown) => {
    const response = await fetch(`${shopward.adminUrl}${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Reply };
  };
  const row = async (id: string) =>
    (await get<{ rows: Row[] }>('/api/rows')).rows.find((one) => one.id === id);
  /** An exchange is recorded after its response, which the client may read first. */
  const untilRow = (id: string, requests: number) =>
    until(
      () => row(id),
      (seen) => seen?.requests === requests,
    );
  const untilState = (isThere: (seen: State) => boolean) => until(() => get<State>('/api/state'), isThere);
  const until = async <T>(look: () => Promise<T>, isThere: (seen: T) => boolean): Promise<T> => {
    for (;;) {
      const seen = await look();
      if (isThere(seen)) return seen;
    }
  };

  it('counts requests and refusals for the row that decided', async () => {
    await fetch(`${shopward.url}/carts/1`);
    await fetch(`${shopward.url}/Carts/2`, { headers: { Authorization: 'Bearer abc' } });
    await fetch(`${shopward.url}/carts/3`, { headers: { Authorization: `Bearer ${shopward.issueToken()}` } });
    await fetch(`${shopward.url}/orders/1`, { method: 'DELETE' });
    await fetch(`${shopward.url}/reports`);
    const carts = await untilRow('GET /carts/{cart_id}', 3);
    expect(carts?.refusals).toEqual({ 'access-token-missing': 1, 'access-token-invalid': 1 });
    expect(carts?.lastSeenMs).toBeGreaterThan(Date.now() - 60_000);
    const refusals = { 'access-token-missing': 1 };
    expect(await untilRow('ANY /orders/**', 1)).toMatchObject({ refusals });
    expect(await untilRow('GET /reports', 1)).toMatchObject({ refusals: {}, observed: refusals });
    expect(await row('GET /never')).toMatchObject({ requests: 0, lastSeenMs: null });
  });

  it('reports the version, the mode, the list and the status of each part', async () => {
    const state = await get<State>('/api/state');
    expect(state).toMatchObject({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      mode: 'enforce',
      ready: true,
      list: { file: shopward.listFile, rows: 4, observing: 1, reloads: { failed: 0 } },
      problems: [],
    });
    expect(state.nowMs - state.startedMs).toBeGreaterThanOrEqual(0);
    const parts = state.parts.map(({ id, status: how }) => `${id} ${how}`).sort();
    const names = 'entity-tags keys rate-limits refresh-tokens store upstream url-resolver';
    expect(parts).toEqual(names.split(' ').map((name) => `${name} ok`));
  });

  it('lists routes that the shop refuses and no row names, and logs them', async () => {
    status = '403 Forbidden';
    await fetch(`${shopward.url}/agents/7`);
    const headers = { 'Content-Type': 'application/json' };
    await fetch(`${shopward.url}/agents/8`, { method: 'POST', body: '{}', headers });
    status = '200 OK';
    await fetch(`${shopward.url}/agents/9`);
    const { drift } = await untilState(
      ({ drift: { unlisted } }) => unlisted.length === 2 && unlisted.some(({ passed }) => passed === 1),
    );
    const plain = drift.unlisted.map(({ lastSeenMs, ...route }) => route);
    expect(plain).toEqual(
      expect.arrayContaining([
        { method: 'GET', template: '/agents/{id}', unauthorized: 0, forbidden: 1, passed: 1 },
        { method: 'POST', template: '/agents/{id}', unauthorized: 0, forbidden: 1, passed: 0 },
      ]),
    );
    const line = await shopward.waitForLog(({ event, method }) => event === 'drift' && method === 'POST');
    expect(line).toMatchObject({ level: 'warn', template: '/agents/{id}', status: 403 });
  });

  /** Renames a complete file, because a file that is overwritten may be read while it is empty. */
  async function editList(text: string): Promise<void> {
    await writeFile(`${shopward.listFile}.new`, text);
    await rename(`${shopward.listFile}.new`, shopward.listFile);
  }

  it('reports a faulty edit with line and column, and keeps the counts of rows over a reload', async () => {
    const before = await row('GET /carts/{cart_id}');
    await editList('groups:\n  Test:\n    - FETCH /carts\ncomplete: true\n');
    const broken = await untilState(({ problems }) => problems.length > 0);
    expect(broken.problems).toMatchObject([
      { file: shopward.listFile, line: 3, column: 7, severity: 'error' },
    ]);
    expect(broken).toMatchObject({ ready: true, list: { rows: 4, reloads: { failed: 1 } } });
    expect(broken.reasons).toEqual([expect.stringContaining(`${shopward.listFile}:3:7: error:`)]);
    await rm(shopward.listFile);
    const isGone = /cannot be read: there is no such file/;
    await untilState(({ problems }) => isGone.test(JSON.stringify(problems)));
    await editList(listOf([...rows, 'GET /more']));
    expect((await untilState(({ problems }) => problems.length === 0)).list.rows).toBe(5);
    expect(await row('GET /carts/{cart_id}')).toEqual(before);
  });

  it('explains a request by the list in force', async () => {
    const { status: answered, body } = await post('/api/explain', { method: 'get', url: '/carts/1' });
    expect([answered, body.verdict]).toEqual([200, 'protected']);
    expect(body.text.join('\n')).toContain('GET /carts/{cart_id}');
    expect((await post('/api/explain', { method: 'GET', url: '/nothing' })).body.verdict).toBe('open');
  });

  it('explains a request with fields and a body', async () => {
    const ask = async (more: object) =>
      (await post('/api/explain', { method: 'GET', url: '/carts/1', ...more })).body;
    const read = (fields: readonly string[]) => ask({ fields });
    const good = shopward.issueToken();
    expect((await read([`Authorization: Bearer ${good}`])).text.join('\n')).toContain('accepted');
    const expired = shopward.issueToken({ exp: 1 });
    expect((await read([`Authorization: Bearer ${expired}`])).text.join('\n')).toContain(
      'refused: access-token-invalid, expired',
    );
    expect((await read(['no field'])).text.join()).toContain('field 1 is not "Name: value"');
    const withBody = await ask({ fields: ['Content-Type: text/plain'], body: 'x' });
    expect(withBody).toMatchObject({ verdict: 'refused' });
    expect(withBody.text.join('\n')).toContain('A GET or HEAD request must not have a body.');
  });

  it.each<[string, object, object, string, string]>([
    ['good', {}, {}, 'token-accepted', 'accepted'],
    ['expired', { exp: 1 }, {}, 'token-refused', 'access-token-invalid, expired'],
    ['of another algorithm', {}, { alg: 'RS512' }, 'token-refused', 'access-token-invalid, algorithm'],
  ])(
    'explains a token that is %s; its signature is neither logged nor returned',
    async (_, claims, header, verdict, why) => {
      const token = shopward.issueToken(claims, header);
      const [, , signature = ''] = token.split('.');
      for (const url of [token, `Authorization: Bearer ${token}`]) {
        const { body } = await post('/api/explain', { method: 'GET', url });
        expect(body.verdict).toBe(verdict);
        expect(body.text.join('\n')).toContain(why);
        expect(JSON.stringify(body)).not.toContain(signature);
      }
      const { body } = await post('/api/explain', {
        method: 'GET',
        url: `curl ${shopward.url}/carts/1 -H 'Authorization: Bearer ${token}'`,
      });
      const isGood = verdict === 'token-accepted';
      expect(body.text.join('\n').includes('accepted')).toBe(isGood);
      expect(JSON.stringify(body)).not.toContain(signature);
      expect(shopward.output()).not.toContain(signature);
    },
  );

  it.each([
    {},
    { method: 'GET' },
    { method: 'GET', url: '/a', fields: 'Accept: x' },
    { method: 'GET', url: '/a', fields: [1] },
    { method: 'GET', url: '/a', fields: Array(101).fill('A: b') },
    { method: 'GET', url: '/a', body: {} },
    { method: '', url: '/a' },
    { method: 1, url: '/a' },
    { method: 'GET', url: '' },
    { method: 'G T', url: '/' },
    { method: 'GET', url: 'x'.repeat(40_000) },
    [],
    null,
  ])('answers 400 to explain %j', async (body) => {
    expect((await post('/api/explain', body)).status).toBe(400);
  });

  it.each([
    [{ url: '/en/x' }, 200],
    [{ prefix: '/en' }, 200],
    [{ all: true }, 200],
    [{}, 400],
    [{ all: false }, 400],
    [{ url: '' }, 400],
    [{ url: '/a', all: true }, 400],
    [[], 400],
  ])('purges %j: %i', async (body, expected) => {
    expect((await post('/api/purge', body)).status).toBe(expected);
  });

  it.each(['url', 'prefix'])('answers 400 to a purge of a %s of more than 2048 octets', async (name) => {
    const statuses = [2_048, 2_049].map(async (length) => {
      return (await post('/api/purge', { [name]: 'x'.repeat(length) })).status;
    });
    expect(await Promise.all(statuses)).toEqual([200, 400]);
  });

  it('lists decisions without queries, fields or tokens', async () => {
    const token = shopward.issueToken();
    const headers = { Authorization: `Bearer ${token}`, 'X-Other': 'secret-field' };
    await fetch(`${shopward.url}/carts/1?secret-query`, { headers });
    await fetch(`${shopward.url}/refresh-tokens/secret-refresh-token`);
    await fetch(`${shopward.url}/the-last-one`);
    const text = await until(
      async () => (await fetch(`${shopward.adminUrl}/api/decisions/search?limit=200`)).text(),
      (seen) => seen.includes('/the-last-one'),
    );
    expect(text).toContain('"path":"/carts/1"');
    expect(text).not.toContain('secret');
    expect(text).not.toContain(token);
  });
});
