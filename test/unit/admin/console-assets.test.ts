import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminServer, createAdminServer } from '../../../src/admin/admin-server.ts';

const folder = path.join(import.meta.dirname, '../../../src/admin/console');
const page = readFileSync(path.join(folder, 'index.html'), 'utf8');
const scripts = readdirSync(folder).filter((name) => name.endsWith('.js'));

describe('the files of the console', () => {
  let server: AdminServer;
  let url: string;

  beforeAll(async () => {
    server = createAdminServer({
      host: '127.0.0.1',
      port: 0,
      hosts: [],
      readiness: () => ({ ready: true, reasons: [] }),
      metrics: async () => '',
      endpoints: [],
    });
    url = `http://127.0.0.1:${(await server.listen()).port}`;
  });
  afterAll(() => server.close());

  it.each([
    ['/', 'text/html; charset=utf-8'],
    ['/console/main.js', 'text/javascript; charset=utf-8'],
    ['/console/base.css', 'text/css; charset=utf-8'],
    ['/console/icon.svg', 'image/svg+xml'],
    ['/console/uPlot.esm.js', 'text/javascript; charset=utf-8'],
    ['/console/uPlot.min.css', 'text/css; charset=utf-8'],
  ])('%s is served as %s with the strict policy; If-None-Match gets 304', async (location, type) => {
    const first = await fetch(url + location);
    expect([first.status, first.headers.get('content-type')]).toEqual([200, type]);
    const policy = first.headers.get('content-security-policy')?.split('; ');
    for (const only of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"])
      expect(policy).toContain(only);
    for (const none of ['form-action', 'frame-ancestors', 'base-uri', 'trusted-types'])
      expect(policy).toContain(`${none} 'none'`);
    for (const more of ["img-src 'self'", "require-trusted-types-for 'script'"])
      expect(policy).toContain(more);
    expect(Object.fromEntries(first.headers)).toMatchObject({
      'cross-origin-opener-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-frame-options': 'DENY',
      'cache-control': 'no-cache',
    });
    const entityTag = first.headers.get('etag') ?? '';
    const again = await fetch(url + location, { headers: { 'If-None-Match': entityTag } });
    expect([again.status, await again.text()]).toEqual([304, '']);
    const head = await fetch(url + location, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  it('links of the pages of docs/, of the console and of alerts lead to sections that this port serves', async () => {
    const served = async (name = '') => {
      const reply = await fetch(`${url}/docs/${name}`);
      const type = reply.headers.get('content-type');
      expect([reply.status, type], name).toEqual([200, 'text/html; charset=utf-8']);
      return reply.text();
    };
    const root = path.join(folder, '../../..');
    const names = readdirSync(path.join(root, 'docs')).filter((name) => name.endsWith('.md'));
    const pages = new Map(await Promise.all(names.map(async (name) => [name, await served(name)] as const)));
    const linked = [...pages].flatMap(([name, text]) =>
      [...text.matchAll(/<a href="([^"]+)"/g)]
        .map(([, target = '']) => (target.startsWith('#') ? name + target : target))
        .filter((target) => target !== '../' && !/^https?:/.test(target)),
    );
    const sources = [path.join(root, 'deploy/prometheus/shopward.rules.yaml')];
    sources.push(...scripts.map((name) => path.join(folder, name)));
    const named = sources.flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/\bdocs\/([a-z-]+\.md#[a-z0-9-]+)/g)].map(
        ([, target = '']) => target,
      ),
    );
    expect(named.length).toBeGreaterThan(40);
    expect(linked.length).toBeGreaterThan(100);
    for (const target of [...linked, ...named]) {
      const [name = '', anchor] = target.split('#');
      const text = pages.get(name) ?? '';
      expect(anchor === undefined ? text !== '' : text.includes(` id="${anchor}"`), target).toBe(true);
    }
    expect((await fetch(`${url}/docs/..%2fpackage.json`)).status).toBe(404);
    expect(pages.get('operations.md')).not.toMatch(/<script|\son\w+=|style=/);
  });
});

describe('the page', () => {
  it('has no inline script or style, and loads nothing from other hosts', () => {
    expect(page).not.toMatch(/<style|style=|\son\w+=|javascript:|<script(?![^>]*src=)|https?:/i);
    const sheets = readdirSync(folder).filter((name) => name.endsWith('.css'));
    for (const name of sheets) {
      expect(readFileSync(path.join(folder, name), 'utf8'), name).not.toMatch(/url\(|@import/);
    }
  });

  it.each(scripts)('%s creates no markup from text', (name) => {
    const text = readFileSync(path.join(folder, name), 'utf8');
    expect(text).not.toMatch(
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|setHTML|srcdoc|\beval\b|new Function|localStorage/,
    );
    for (const [, target] of text.matchAll(/from '([^']+)'/g))
      expect(target).toMatch(/^\.\/([a-z-]+|uPlot\.esm)\.js$/);
  });
});
