import { describe, expect, it } from 'vitest';
import { runVerify } from '../../../src/cli/verify.ts';
import { runCommand } from './command-run.ts';
import { failures, find, openVerifyStage, startFront } from './verify-stage.ts';

const stage = openVerifyStage();

it('verify reports a certificate that clients refuse, and sends no request', async () => {
  let requests = 0;
  const front = await startFront({
    to: stage.shopward.url,
    isTls: true,
    handle(_request, _response, relay) {
      requests += 1;
      relay();
    },
  });
  const report = await stage.verify(front, { token: stage.shopward.issueToken() });
  expect(find(report, 'GET /ID')).toMatchObject({
    outcome: 'failed',
    got: 'DEPTH_ZERO_SELF_SIGNED_CERT',
    advice: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
  });
  expect(requests).toBe(0);
});

describe('verify', () => {
  it('reports a refused connection once', async () => {
    const report = await stage.verify('http://127.0.0.1:9');
    expect([report.code, failures(report)]).toEqual([1, ['reach: GET /ID: connection refused']]);
  });

  it('reports an answer that does not come in time', async () => {
    const front = await startFront({ to: stage.shopward.url, handle: () => {} });
    expect(failures(await stage.verify(front, { timeout: '0.2' }))).toEqual([
      'reach: GET /ID: no answer in time',
    ]);
  });

  it('ends at the deadline of the whole run', async () => {
    let asked = 0;
    const front = await startFront({
      to: stage.shopward.url,
      handle(_request, _response, relay) {
        asked += 1;
        if (asked < 5) relay();
      },
    });
    const report = await stage.verify(front, { deadline: '1', timeout: '30' });
    expect(report.code).toBe(1);
    expect(failures(report).at(-1)).toMatch(/no time left$/);
  });

  it('finds a deployment below a path', async () => {
    const front = await startFront({
      to: stage.shopward.url,
      handle(request, _response, relay) {
        request.url = request.url?.replace(/^\/api(?=\/)/, '') ?? '';
        relay();
      },
    });
    expect(failures(await stage.verify(`${front}/api/`))).toEqual([]);
  });

  it.each([
    ['shop.example', {}],
    ['ftp://shop.example', {}],
    ['http://shop.example/?a=1', {}],
    ['http://user@shop.example/', {}],
    ['http://127.0.0.1:1', { timeout: '0' }],
    ['http://127.0.0.1:1', { timeout: 'soon' }],
    ['http://127.0.0.1:1', { deadline: '-1' }],
  ])('exits 2 for bad usage: %s %j', async (url, options) => {
    const { code, out, err } = await runCommand((io) =>
      runVerify(url, { config: stage.shopward.configFile, ...options }, io),
    );
    expect({ code, out }).toEqual({ code: 2, out: [''] });
    expect(err).toHaveLength(1);
  });

  it('exits 78 for a missing configuration', async () => {
    const { code } = await runCommand((io) => runVerify('http://127.0.0.1:1', { config: 'gone.yaml' }, io));
    expect(code).toBe(78);
  });
});
