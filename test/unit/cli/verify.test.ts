import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { runVerify } from '../../../src/cli/verify.ts';
import { runCommand } from './command-run.ts';
import { failures, find, openVerifyStage, startFront } from './verify-stage.ts';

const stage = openVerifyStage();

describe('verify of a deployment that is as it should be', () => {
  it('passes every check, and changes nothing', async () => {
    const start = stage.shop.received.requests.length;
    const report = await stage.verify(
      stage.shopward.url,
      {},
      { SHOPWARD_TOKEN: stage.shopward.issueToken() },
    );
    expect(failures(report)).toEqual([]);
    expect([report.code, report.ok]).toEqual([0, true]);
    expect(find(report, 'GET /carts/{cart_id}')).toEqual({
      area: 'rows',
      name: 'GET /carts/{cart_id}',
      outcome: 'ok',
      expected: '401 002',
      got: '401 002',
    });
    expect(report.checks.filter(({ area }) => area === 'rows')).toHaveLength(23);
    expect(find(report, 'GET /protected-resources')?.got).toBe('56 rows, 0 differ');
    expect(find(report, 'Date')).toMatchObject({ area: 'clock', outcome: 'ok' });
    expect(report.checks.filter(({ area }) => area === 'tags').map(({ outcome }) => outcome)).toEqual([
      'ok',
      'ok',
      'ok',
      'ok',
    ]);
    expect(report.checks.filter(({ outcome }) => outcome === 'skipped')).toEqual([
      expect.objectContaining({ area: 'unsafe', name: '33 rows' }),
      expect.objectContaining({ area: 'shop' }),
    ]);
    expect(stage.unsafeSince(start)).toEqual([]);
  });

  it('tries every row with --unsafe-methods, and none of it reaches the shop', async () => {
    const start = stage.shop.received.requests.length;
    const report = await stage.verify(stage.shopward.url, {
      unsafeMethods: true,
      token: stage.shopward.issueToken(),
    });
    expect(failures(report)).toEqual([]);
    const unsafe = report.checks.filter(({ area }) => area === 'unsafe');
    expect(unsafe).toHaveLength(33);
    expect(stage.unsafeSince(start)).toEqual([]);
  });

  it('prints a table with the counts', async () => {
    const { code, out } = await runCommand((io) =>
      runVerify(stage.shopward.url, { config: stage.shopward.configFile }, io),
    );
    expect(code).toBe(0);
    expect(out[0]).toMatch(/^ok {7}clock {5}Date +as here$/);
    expect(out[1]).toMatch(/^ok {7}rows {6}GET \/customers\/\{customer_reference\} +401 002$/);
    expect(out.at(-1)).toBe(`${stage.shopward.url}: 37 ok, 0 failed, 3 skipped`);
  });
});

describe('verify of a shop that nothing guards', () => {
  it('fails, and sends nothing that could change anything, whatever the arguments', async () => {
    const start = stage.shop.received.requests.length;
    const report = await stage.verify(stage.shop.url, {
      unsafeMethods: true,
      token: stage.shopward.issueToken(),
    });
    expect(report.code).toBe(1);
    expect(report.checks.filter(({ area, outcome }) => area === 'rows' && outcome === 'ok')).toEqual([]);
    expect(find(report, 'GET /protected-resources')?.outcome).toBe('failed');
    expect(find(report, '33 rows')).toMatchObject({
      outcome: 'skipped',
      advice: expect.stringContaining('would reach the shop'),
    });
    expect(find(report, 'other spellings')?.outcome).toBe('skipped');
    expect(stage.unsafeSince(start)).toEqual([]);
  });

  it('stops at the first unsafe request that was not refused', async () => {
    const start = stage.shop.received.requests.length;
    const front = await startFront({
      to: stage.shop.url,
      handle(request, response, relay) {
        if (request.method !== 'GET') return relay();
        response.writeHead(401, { 'WWW-Authenticate': 'Bearer realm="x"' });
        response.end('{"errors":[{"status":401,"code":"002","detail":"Missing access token."}]}');
      },
    });
    const report = await stage.verify(front, { unsafeMethods: true });
    const sent = stage.unsafeSince(start);
    expect(sent).toHaveLength(1);
    expect(sent[0]).toMatch(/^PATCH \/customers\/shopward-verify-[0-9a-f]{12}\/addresses\/shopward-verify-/);
    const unsafe = report.checks.filter(({ area }) => area === 'unsafe');
    expect(unsafe.map(({ outcome }) => outcome)).toEqual(['failed', ...Array(32).fill('skipped')]);
  });

  it('never sends a DELETE without an id', async () => {
    const list = path.join(stage.shopward.folder, 'delete.yaml');
    await writeFile(list, 'groups:\n  A:\n    - GET /carts\n    - DELETE /carts\ncomplete: true\n');
    const methods = new Set<string>();
    const front = await startFront({
      to: stage.shopward.url,
      handle(request, _response, relay) {
        methods.add(request.method ?? '');
        relay();
      },
    });
    const report = await stage.verify(front, { unsafeMethods: true, list });
    expect(find(report, 'DELETE /carts')).toMatchObject({ outcome: 'skipped' });
    expect([...methods]).toEqual(['GET']);
  });
});
