import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { runVerify, type VerifyChoice } from '../../../src/cli/verify.ts';
import { freePort } from '../../harness/free-port.ts';
import { startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { listOf } from '../access/list-text.ts';
import { makeFolder } from '../config/config-folder.ts';
import { runCommand } from './command-run.ts';
import { oddAnswers } from './odd-answers.ts';
import { failures, find, openVerifyStage, type Report, startFront } from './verify-stage.ts';

const stage = openVerifyStage();

/** A proxy for one test, in front of the demo shop by default. */
async function startProxy(options: Partial<Parameters<typeof startShopwardHere>[0]> = {}) {
  const proxy = await startShopwardHere({ upstream: stage.shop.url, ...options });
  onTestFinished(() => proxy.stop());
  return proxy;
}

describe('verify reports', () => {
  it('another list', async () => {
    const rows = ['GET /carts', { match: 'GET /orders', scopes: ['buyer'] }, 'GET /mine'];
    const other = await startProxy({ rows });
    const config = path.join(stage.shopward.folder, 'other.yaml');
    const text = (await readFile(stage.shopward.configFile, 'utf8')).replace(/^protectedResources:.*$/m, '');
    await writeFile(config, `${text}\nprotectedResources: other-list.yaml\n`);
    const list = listOf('GET /carts', 'GET /orders', 'GET /wishlists');
    await writeFile(path.join(stage.shopward.folder, 'other-list.yaml'), list);
    const report = await stage.verify(other.url, { config });
    expect(find(report, 'GET /wishlists')).toMatchObject({ outcome: 'failed', got: '200' });
    expect(find(report, 'GET /protected-resources')).toMatchObject({
      outcome: 'failed',
      got: '3 rows, 3 differ',
      advice: 'not there: GET /wishlists; only there: GET /mine; other scopes: GET /orders',
    });
  });

  it.each([
    ['a weak tag', (tag: string) => `W/${tag}`],
    ['a marked tag', (tag: string) => tag.replace(/"$/, '-gzip"')],
    ['no tag', () => undefined],
  ])('%s after compression in front', async (what, change) => {
    const front = await startFront({
      to: stage.shopward.url,
      alter(fields, request) {
        if (!request.headers['accept-encoding']?.includes('gzip') || fields.etag === undefined) return;
        const altered = change(fields.etag);
        if (altered === undefined) delete fields.etag;
        else fields.etag = altered;
      },
    });
    const token = stage.shopward.issueToken();
    const check = find(await stage.verify(front, { token }), /gzip$/);
    expect(check?.outcome).toBe('failed');
    expect(check?.advice).toContain(
      what === 'no tag' ? 'drops ETag' : 'ifMatch: lenient for /carts/{cart_id}',
    );
  });

  it('a resource that changes between two reads, and the setting that helps', async () => {
    let reads = 0;
    const document = (id: string) => {
      reads += 1;
      return { data: { type: 'carts', id, attributes: { now: reads, name: 'a' } } };
    };
    const shop = await startFront({
      to: stage.shop.url,
      handle(request, response, relay) {
        const [, name, id] = (request.url ?? '').split('/');
        if (request.method !== 'GET' || name !== 'carts') return relay();
        const body = id === undefined ? { data: [document('1').data] } : document(id);
        response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
      },
    });
    const resource = { collection: '/carts', member: '/carts/{cart_id}' };
    const ignore = ['/data/attributes/now'];
    for (const [more, outcome] of [
      [{}, 'failed'],
      [{ ignore }, 'ok'],
    ] as const) {
      const entityTags = { resources: [{ ...resource, ...more }] };
      const shopward = await startProxy({ upstream: shop, config: { entityTags } });
      const report = await stage.verify(shopward.url, { token: shopward.issueToken() });
      const check = find(report, 'GET /carts/1, twice');
      expect(check).toMatchObject({ outcome });
      if (outcome === 'failed')
        expect(check?.advice).toContain('name that part in ignore of /carts/{cart_id}');
    }
  });

  it('a spelling that is open, below the prefix of an API', async () => {
    const proxy = await startProxy({ rows: ['GET /api/v2/carts', 'GET /api/v2/carts/{id}'] });
    const asked: string[] = [];
    const front = await startFront({
      to: proxy.url,
      handle(request, response, relay) {
        asked.push(request.url ?? '');
        if (request.url?.startsWith('/api/v2/CARTS/')) response.end('{}');
        else relay();
      },
    });
    const report = await stage.verify(front, { config: proxy.configFile });
    expect(failures(report)).toEqual(['spelling: GET /api/v2/CARTS/ID: 200']);
    for (const spelling of ['%63arts/', 'carts;x=1/', 'carts/x/carts/', 'carts%2F'])
      expect(
        asked.some((path) => path.startsWith(`/api/v2/${spelling}`)),
        spelling,
      ).toBe(true);
  });

  it('nothing about longer paths with request.profile: plain', async () => {
    const proxy = await startProxy({ rows: ['GET /carts/{id}'], config: { request: { profile: 'plain' } } });
    expect(failures(await stage.verify(proxy.url, { config: proxy.configFile }))).toEqual([]);
  });

  it('no weak tag if ifMatch is lenient', async () => {
    const resource = { collection: '/carts', member: '/carts/{cart_id}', ifMatch: 'lenient' };
    const lenient = await startProxy({ config: { entityTags: { resources: [resource] } } });
    const front = await startFront({
      to: lenient.url,
      alter(fields, request) {
        if (request.headers['accept-encoding'] === 'gzip' && fields.etag) fields.etag = `W/${fields.etag}`;
      },
    });
    const report = await stage.verify(front, { token: lenient.issueToken(), config: lenient.configFile });
    expect(failures(report)).toEqual([]);
    expect(find(report, /gzip$/)?.got).toMatch(/^W\/"/);
  });

  it('a token that is not accepted', async () => {
    const token = stage.shopward.issueToken({ exp: Math.floor(Date.now() / 1000) - 60 });
    const check = find(await stage.verify(stage.shopward.url, { token }), /with the given token$/);
    expect(check).toMatchObject({ outcome: 'failed', got: '401 001' });
    expect(JSON.stringify(check)).not.toContain(token.slice(0, 20));
  });

  it.each([3_600_000, -3_600_000])('a clock that is %i ms off', async (ms) => {
    const front = await startFront({
      to: stage.shopward.url,
      alter: (fields) => Object.assign(fields, { date: new Date(Date.now() + ms).toUTCString() }),
    });
    const check = find(await stage.verify(front), 'Date');
    expect(check).toMatchObject({ outcome: 'failed', advice: expect.stringContaining('NTP') });
    expect(check?.got).toMatch(ms > 0 ? /^359\d s ahead of/ : /^(?:359\d|360[01]) s behind/);
  });

  describe("the shop's port", () => {
    /** Checks of the shop's port; `upstream` is its address in the local configuration. */
    async function checkedShop(upstream: string, more: VerifyChoice = {}) {
      const cwd = makeFolder({
        'config/shopward.yaml': `auth: { algorithms: [HS256], keys: { secret: "${'s'.repeat(40)}" } }\nupstream: { url: "${upstream}" }\n`,
        'config/protected-resources.yaml': listOf('GET /carts'),
      });
      const { out } = await runCommand(
        (io) => runVerify(stage.shopward.url, { json: true, timeout: '2', ...more }, io),
        { cwd },
      );
      const { checks } = JSON.parse(out.join('\n')) as Report;
      return checks.filter(({ area }) => area === 'shop');
    }
    // Looks like the address of another machine: it is not written as a loopback address.
    const notLoopback = (port: number | string) => `http://0.0.0.0:${port}`;

    it('fails if the port is open to this machine, and passes if it is closed', async () => {
      const { port } = new URL(stage.shop.url);
      const advice = expect.stringContaining('--inside');
      const closed = notLoopback(await freePort());
      expect(await checkedShop(notLoopback(port))).toMatchObject([
        { outcome: 'failed', got: 'open', advice },
      ]);
      expect(await checkedShop(closed)).toMatchObject([{ outcome: 'ok', got: 'closed' }]);
      const fromInside = await checkedShop(notLoopback(port), { inside: true });
      expect(fromInside).toMatchObject([{ outcome: 'ok', got: 'taken' }]);
    });

    it.each(oddAnswers)('names answers of the shop that the proxy refuses: %s', async (cause, octets) => {
      const shop = await startRecordingUpstream(() => octets);
      onTestFinished(() => shop.close());
      const proxy = await startProxy({ upstream: `http://127.0.0.1:${shop.port}`, rows: ['GET /mine'] });
      // The real proxy decides the same.
      expect((await fetch(`${proxy.url}/`)).status).toBe(cause === 'none' ? 200 : 502);
      const [check] = await checkedShop(`http://127.0.0.1:${shop.port}`);
      expect(check?.outcome).toBe(cause === 'none' ? 'ok' : 'failed');
      if (cause !== 'none') expect(check?.got).toContain(cause);
    });
  });

  it('nothing about refusals in another errors.format', async () => {
    for (const format of ['json', 'problem']) {
      const other = await startProxy({ config: { errors: { format } } });
      expect(failures(await stage.verify(other.url, { config: other.configFile }))).toEqual([]);
    }
  });

  it('a refusal without a challenge', async () => {
    const front = await startFront({
      to: stage.shopward.url,
      alter: (fields) => delete fields['www-authenticate'],
    });
    const found = find(await stage.verify(front), 'GET /carts');
    expect(found).toMatchObject({ outcome: 'failed', got: 'no WWW-Authenticate' });
  });
});

describe('verify skips', () => {
  it('spellings, if the list protects no read', async () => {
    const { url, configFile: config } = await startProxy({ rows: ['POST /carts'] });
    expect(find(await stage.verify(url, { config }), 'other spellings')?.outcome).toBe('skipped');
  });

  it('rows in observe mode, whose requests would reach the shop', async () => {
    const observing = await startProxy({ rows: ['GET /orders', { match: 'GET /carts', observe: true }] });
    const report = await stage.verify(observing.url, { config: observing.configFile });
    expect(failures(report)).toEqual([]);
    expect(find(report, 'GET /carts')).toMatchObject({ outcome: 'skipped' });
  });

  it('redirects, which it reports and does not follow', async () => {
    const asked: string[] = [];
    const front = await startFront({
      to: stage.shopward.url,
      handle(request, response, relay) {
        asked.push(request.url ?? '');
        if (!request.url?.startsWith('/CUSTOMERS')) return relay();
        response.writeHead(308, { Location: '/followed' }).end();
      },
    });
    const found = find(await stage.verify(front), 'GET /CUSTOMERS/ID');
    expect(found).toMatchObject({ outcome: 'skipped', advice: expect.stringMatching(/^308:/) });
    expect(asked).not.toContain('/followed');
  });
});
