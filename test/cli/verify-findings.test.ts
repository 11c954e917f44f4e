import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { startShopwardHere } from '../harness/shopward-here.ts';
import { failures, find, openVerifyStage, startFront } from './verify-stage.ts';

const stage = openVerifyStage();

describe('verify finds what is wrong', () => {
  it('another list', async () => {
    const other = await startShopwardHere({
      upstream: stage.shop.url,
      rows: ['GET /carts', { match: 'GET /orders', scopes: ['buyer'] }, 'GET /mine'],
    });
    try {
      const list = path.join(stage.shopward.folder, 'other.yaml');
      await writeFile(
        list,
        'groups:\n  A:\n    - GET /carts\n    - GET /orders\n    - GET /wishlists\ncomplete: true\n',
      );
      const report = await stage.verify(other.url, { list });
      expect(find(report, 'GET /wishlists')).toMatchObject({ outcome: 'failed', got: '200' });
      expect(find(report, 'GET /protected-resources')).toMatchObject({
        outcome: 'failed',
        got: '3 rows, 3 differ',
        advice: 'not there: GET /wishlists; only there: GET /mine; other scopes: GET /orders',
      });
    } finally {
      await other.stop();
    }
  });

  it.each([
    ['a weak tag', (tag: string) => `W/${tag}`],
    ['a marked tag', (tag: string) => tag.replace(/"$/, '-gzip"')],
    ['no tag', () => undefined],
  ])('%s behind compression in front', async (what, change) => {
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

  it('what changes by itself between two reads, with the line that cures it', async () => {
    let reads = 0;
    const document = (id: string) => {
      reads += 1;
      return { data: { type: 'carts', id, attributes: { 'now\u009b/': reads, name: 'a' } } };
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
    const ignore = ['/data/attributes/now\u009b~1'];
    for (const [more, outcome] of [
      [{}, 'failed'],
      [{ ignore }, 'ok'],
    ] as const) {
      const entityTags = { resources: [{ ...resource, ...more }] };
      const shopward = await startShopwardHere({ upstream: shop, config: { entityTags } });
      try {
        const report = await stage.verify(shopward.url, { token: shopward.issueToken() });
        expect(find(report, 'GET /carts/1, twice')).toMatchObject({ outcome });
        if (outcome === 'ok') continue;
        expect(find(report, 'GET /carts/1, twice')).toMatchObject({
          got: 'another ETag; "/data/attributes/now\\u009b~1" differ',
          advice: expect.stringContaining('/carts/{cart_id}: ignore: ["/data/attributes/now\\u009b~1"]'),
        });
      } finally {
        await shopward.stop();
      }
    }
  });

  it('no weak tag, where the list of tracked resources takes them', async () => {
    const config = {
      entityTags: { resources: [{ collection: '/carts', member: '/carts/{cart_id}', ifMatch: 'lenient' }] },
    };
    const lenient = await startShopwardHere({ upstream: stage.shop.url, config });
    try {
      const front = await startFront({
        to: lenient.url,
        alter(fields, request) {
          if (request.headers['accept-encoding'] === 'gzip' && fields.etag) fields.etag = `W/${fields.etag}`;
        },
      });
      const report = await stage.verify(front, { token: lenient.issueToken(), config: lenient.configFile });
      expect(failures(report)).toEqual([]);
      expect(find(report, /gzip$/)?.got).toMatch(/^W\/"/);
    } finally {
      await lenient.stop();
    }
  });

  it('a token that is not taken', async () => {
    const token = stage.shopward.issueToken({ exp: Math.floor(Date.now() / 1000) - 60 });
    const check = find(await stage.verify(stage.shopward.url, { token }), /with the given token$/);
    expect(check).toMatchObject({ outcome: 'failed', got: '401 001' });
    expect(JSON.stringify(check)).not.toContain(token.slice(0, 20));
  });

  it('a shop that is away', async () => {
    const lonely = await startShopwardHere({ upstream: 'http://127.0.0.1:9' });
    try {
      const report = await stage.verify(lonely.url, { config: lonely.configFile });
      expect(failures(report)).toEqual([
        'open: GET /ID: 502 upstream-unreachable',
        'resolver: GET /url-resolver?url=/en/ID: 502 upstream-unreachable',
      ]);
    } finally {
      await lonely.stop();
    }
  });

  it('an open route that needs a token there, and one that the list protects', async () => {
    const report = await stage.verify(stage.shopward.url, { open: ['/stores', '/carts'] });
    expect(find(report, 'GET /stores')).toMatchObject({ area: 'open', outcome: 'ok', got: '200' });
    expect(report.checks.find(({ area, name }) => area === 'open' && name === 'GET /carts')?.outcome).toBe(
      'skipped',
    );
    const front = await startFront({
      to: stage.shopward.url,
      handle(request, response, relay) {
        if (request.url !== '/stores') return relay();
        response.writeHead(401, { 'WWW-Authenticate': 'Bearer' });
        response.end('{"errors":[{"status":401,"code":"002"}]}');
      },
    });
    expect(failures(await stage.verify(front, { open: ['/stores'] }))).toEqual([
      'open: GET /stores: 401 002',
    ]);
  });

  it('a refusal without a challenge', async () => {
    const front = await startFront({
      to: stage.shopward.url,
      alter: (fields) => delete fields['www-authenticate'],
    });
    expect(find(await stage.verify(front), 'GET /carts')).toMatchObject({
      outcome: 'failed',
      got: 'no WWW-Authenticate',
    });
  });
});

describe('verify leaves alone', () => {
  it('rows in observe mode: they would reach the shop', async () => {
    const observing = await startShopwardHere({
      upstream: stage.shop.url,
      rows: [
        'GET /orders',
        { match: 'PATCH /carts/{id}', observe: true },
        { match: 'GET /carts', observe: true },
      ],
    });
    try {
      const start = stage.shop.received.requests.length;
      const report = await stage.verify(observing.url, { config: observing.configFile, unsafeMethods: true });
      expect(failures(report)).toEqual([]);
      expect(find(report, 'GET /carts')).toMatchObject({ outcome: 'skipped' });
      expect(find(report, 'PATCH /carts/{id}')).toMatchObject({ outcome: 'skipped' });
      expect(stage.unsafeSince(start)).toEqual([]);
    } finally {
      await observing.stop();
    }
  });

  it('redirects: it says so, and follows none', async () => {
    const asked: string[] = [];
    const front = await startFront({
      to: stage.shopward.url,
      handle(request, response, relay) {
        asked.push(request.url ?? '');
        if (!request.url?.startsWith('/CARTS')) return relay();
        response.writeHead(308, { Location: '/followed' });
        response.end();
      },
    });
    const report = await stage.verify(front);
    expect(find(report, 'GET /CARTS')).toMatchObject({
      outcome: 'skipped',
      advice: expect.stringMatching(/^308:/),
    });
    expect(asked).not.toContain('/followed');
  });
});
