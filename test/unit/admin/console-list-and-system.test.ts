import { readFile, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { freePort } from '../../harness/free-port.ts';
import { findAxeFaults } from './accessibility.ts';
import { openConsole, settings, shop, useConsole } from './console-page.ts';
import { filled } from './console-states.ts';

/** The page in a real Chromium, in front of the demo shop: the list and the system view. */
describe.concurrent('the console', () => {
  useConsole();

  it('shows a faulty edit with line and column until it is corrected', async (context) => {
    const { open, page, shopward } = await openConsole(context, settings());
    await open('list');
    const good = await readFile(shopward.listFile, 'utf8');
    await writeFile(shopward.listFile, good.replace('    - GET /orders\n', '    - FETCH /orders\n'));
    const line = good.split('\n').indexOf('    - GET /orders') + 1;
    const banner = page.locator('#list-problems .banner');
    await banner.getByText(`${shopward.listFile}:${line}:7`).waitFor();
    await banner.getByText('error: an unknown method').waitFor();
    await page.locator('#health', { hasText: 'ready, not all well' }).waitFor();
    await page.getByRole('link', { name: 'Now' }).click();
    await page.locator('#sentence', { hasText: `${shopward.listFile}:${line}:7` }).waitFor();
    await writeFile(shopward.listFile, good);
    await page
      .locator('#sentence[data-status="ok"]', { hasText: /Over since .* \(.*\): The last edit of a file/ })
      .waitFor();
    await page
      .locator('#now-marks tr', { hasText: 'over The last edit of a file is not in force' })
      .waitFor();
  });

  describe('the system', () => {
    it('shows parts, processes and keys', async (context) => {
      const { open, page } = await openConsole(context);
      await open('system');
      await page.locator('#keys-body tr', { hasText: 'RS256' }).waitFor();
      await page.getByText('1 of 1 process serves here').waitFor();
    });

    it('names the issuer of each key, and of each source, where there are several', async (context) => {
      const away = `http://127.0.0.1:${await freePort()}/keys`;
      const issuers = [
        { name: 'customers', issuer: 'https://customers.example', keys: { jwks: shop.jwksUrl } },
        { name: 'partners', issuer: 'https://partners.example', keys: { files: ['public.pem'] } },
        { name: 'staff', issuer: 'https://staff.example', keys: { jwks: away } },
      ];
      const { open, page } = await openConsole(context, settings({ auth: { keys: undefined, issuers } }));
      await open('system');
      await page.locator('#keys-body tr', { hasText: 'customers: ' }).waitFor();
      const rows = await page.locator('#keys-body tr').allInnerTexts();
      expect(rows.map((row) => row.split(':')[0])).toEqual(['customers', 'partners']);
      const about = page.locator('#keys-about');
      await about.getByText('unreachable').waitFor();
      expect(await about.innerText()).toMatch(/customers.*partners.*staff/s);
      expect(await findAxeFaults(page)).toEqual([]);
    });

    it('purges only after a confirmation', async (context) => {
      const { open, page } = await openConsole(context);
      let purges = 0;
      page.on('request', (request) => {
        purges += Number(request.url().endsWith('/api/purge'));
      });
      await open('system');
      await page.getByLabel('URL', { exact: true }).fill('/en/x');
      await page.getByRole('button', { name: 'Drop…' }).click();
      const dialog = page.getByRole('dialog', { name: 'Are you sure?' });
      await dialog.getByText('what is cached of /en/x').waitFor();
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'hidden' });
      expect(await page.locator('#purge-notice').textContent()).toBe('');
      await page.getByRole('button', { name: 'Drop…' }).click();
      await dialog.getByRole('button', { name: 'No' }).click();
      expect(await page.locator('#purge-notice').textContent()).toBe('');
      await page.getByRole('button', { name: 'Drop…' }).click();
      await dialog.getByRole('button', { name: 'Drop it' }).click();
      await page.locator('#purge-notice', { hasText: 'Dropped what is cached of /en/x.' }).waitFor();
      expect(purges).toBe(1);
    });
  });

  it('shows no secret, on the page or in the answers of its API', async (context) => {
    const secrets = {
      auth: {
        keys: { jwks: undefined, secret: 'planted-hmac-secret-of-32-octets-and-more' },
        algorithms: ['HS256'],
      },
      admin: { token: 'planted-admin-token' },
      refreshTokens: { digestKey: 'planted-digest-key' },
      // Nothing listens at this port. Its password is used all the same, and must not be shown.
      store: { url: `redis://planted-user:planted-password@127.0.0.1:${await freePort()}` },
    };
    const { forgive, page, shopward } = await openConsole(context, settings(secrets));
    const headers = { Authorization: 'Bearer planted-admin-token' };
    const locations = ['state', 'rows', 'system', 'reasons', 'decisions/search', 'series'];
    for (const location of locations) {
      const response = await fetch(`${shopward.adminUrl}/api/${location}`, { headers });
      expect(await response.text(), location).not.toContain('planted');
    }
    await page.goto(`${shopward.adminUrl}/#/system`);
    await page.locator('#token-input').fill('planted-admin-token');
    await page.locator('#token-input').press('Enter');
    for (const view of ['system', 'now', 'requests', 'list', 'roll-out']) {
      await page.locator(`nav [data-view="${view}"]`).click();
      await page
        .locator(filled[view] ?? 'main')
        .first()
        .waitFor();
      expect(await page.content(), view).not.toContain('planted');
    }
    forgive('401');
  });
});
