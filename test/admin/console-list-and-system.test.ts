import { readFile, writeFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { describe, expect, it, type TestContext } from 'vitest';
import { freePort } from '../harness/free-port.ts';
import { findAccessibilityFaults, findAxeFaults } from './accessibility.ts';
import { hold, openConsole, settings, shop, useConsole } from './console-page.ts';
import { filled } from './console-states.ts';

/** The page in a real Chromium, in front of the demo shop: the list and its editor, the settings, and a small phone. */
describe.concurrent('the console', () => {
  useConsole();

  const openEditor = async (page: Page) => {
    await page.getByRole('button', { name: 'Open the file' }).click();
    await page.getByLabel('Text of the list').waitFor();
  };

  it('searches the list', async (context) => {
    const { open, page, shopward } = await openConsole(context);
    await fetch(`${shopward.url}/orders`);
    await open('list');
    const rows = page.locator('#row-body tr');
    await page.getByText('56 rows of 56, the first 20 are shown').waitFor();
    await page.getByRole('button', { name: 'Show all 56' }).click();
    await context.expect.poll(() => rows.count()).toBe(56);
    await page.getByLabel('Search rows').fill('delete wishlist-items');
    await page.getByText('1 row of 56').waitFor();
    expect(await rows.count()).toBe(1);
    expect(await rows.first().textContent()).toContain('/wishlists/{wishlist_id}/wishlist-items/');
    await page.getByLabel('Search rows').fill('no such row');
    await page.getByText('0 rows of 56').waitFor();
    await page.getByLabel('Search rows').fill('');
    await page.locator('#row-kind').selectOption('unmet');
    await rows.filter({ hasText: 'never' }).first().waitFor();
    await context.expect.poll(() => rows.filter({ hasNotText: 'never' }).count()).toBe(0);
  });

  it('shows what is wrong with an edit, with its place, until it is mended', async (context) => {
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
    await page.locator('#past summary').click();
    await page.locator('#past-list', { hasText: 'The last edit is not in force' }).waitFor();
  });

  describe('the editor', () => {
    const opened = async (context: TestContext) => {
      // Each with a file of its own.
      const stage = await openConsole(context, settings());
      const { open, page, shopward } = stage;
      await open('list');
      const before = await readFile(shopward.listFile, 'utf8');
      await openEditor(page);
      return {
        ...stage,
        before,
        textarea: page.getByLabel('Text of the list'),
        save: page.getByRole('button', { name: 'Save', exact: true }),
        check: () => page.getByRole('button', { name: 'Check and show' }).click(),
      };
    };

    it('checks, shows the difference, asks for consent where routes open, and saves', async (context) => {
      const { before, check, page, shopward, save, textarea } = await opened(context);
      expect(await textarea.inputValue()).toBe(before);
      expect(await save.isDisabled()).toBe(true);

      await textarea.fill(before.replace('    - GET /returns\n', '    - GET /gift-cards/{id}\n'));
      await check();
      const result = page.getByRole('region', { name: 'Result of the check' });
      await result.locator('.difference.removed', { hasText: 'GET /returns' }).waitFor();
      await result.locator('.difference.added', { hasText: 'GET /gift-cards/{id}' }).waitFor();
      expect(await result.locator('.diff.removed').textContent()).toBe('-     - GET /returns\n');
      expect(await result.locator('.diff.added').textContent()).toBe('+     - GET /gift-cards/{id}\n');
      expect(await save.isDisabled()).toBe(true);
      expect(await readFile(shopward.listFile, 'utf8')).toBe(before);

      await page.getByLabel('1 route will be protected less than now').check();
      await save.click();
      await page.locator('#notice', { hasText: 'Saved: 56 rows, 1 added, 1 removed' }).waitFor();
      await page.getByLabel('Search rows').fill('gift-cards');
      await page.getByText('1 row of 56').waitFor();
      expect((await fetch(`${shopward.url}/gift-cards/1`)).status).toBe(401);
      await page.locator('#history-list > li', { hasText: 'GET /returns' }).waitFor();
      const edit = page.locator('#history-list > li').first();
      expect(await edit.textContent()).toContain('1 route is protected less than before.');
      await writeFile(shopward.listFile, before);
      await page.getByText('0 rows of 56').waitFor();
      // Whoever writes the file: the history has it, and the log.
      await page.locator('#history-list > li', { hasText: 'GET /gift-cards/{id}' }).nth(1).waitFor();
      await shopward.waitForLog(
        ({ event, row, level }) => event === 'list-row' && row === 'GET /gift-cards/{id}' && level === 'warn',
      );
    });

    it('saves nothing with a mistake, and leads to it', async (context) => {
      const { before, check, page, shopward, save, textarea } = await opened(context);
      await textarea.fill(before.replace('    - GET /returns\n', '    - GET returns\n'));
      await check();
      const mistakes = page.locator('#edit-result .banner.bad');
      await mistakes.getByText('a row is a method or ANY, one space, and a path').waitFor();
      expect(await save.isDisabled()).toBe(true);
      await mistakes
        .getByRole('button', { name: /go to line/ })
        .first()
        .click();
      const chosen = await page.evaluate(
        '(({ value, selectionStart, selectionEnd }) => value.slice(selectionStart, selectionEnd))(document.activeElement)',
      );
      expect(chosen).toBe('GET returns');
      expect(await readFile(shopward.listFile, 'utf8')).toBe(before);
    });

    it('leaves whoever wrote on meanwhile, or closed it, alone with what was checked', async (context) => {
      const { before, check, page, textarea } = await opened(context);
      await textarea.fill(before.replace(/^complete: true/m, '# mine\ncomplete: true'));
      for (const leave of ['writes on', 'closes']) {
        const held = await hold(page, /api\/list\/check/);
        await held.by(check);
        if (leave === 'closes') await page.getByRole('button', { name: 'Close without saving' }).click();
        else await textarea.pressSequentially(' ');
        const focus = await page.evaluate('document.activeElement.id');
        await held.letGo();
        expect(await page.evaluate('document.activeElement.id'), leave).toBe(focus);
        expect(await page.locator('#edit-result').textContent(), leave).toBe('');
        expect(await page.locator('#notice').textContent(), leave).toBe('');
        expect(await page.locator('#edit-save:enabled').count(), leave).toBe(0);
      }
    });

    it('forgets the check when the text changes, and saves nothing over somebody else’s edit', async (context) => {
      const { before, check, forgive, page, shopward, save, textarea } = await opened(context);
      await textarea.fill(before.replace(/^complete: true/m, '# mine\ncomplete: true'));
      await check();
      await page.getByText('No route is protected differently.').waitFor();
      expect(await save.isEnabled()).toBe(true);
      await textarea.press('End');
      await textarea.pressSequentially(' ');
      expect(await save.isDisabled()).toBe(true);
      await check();
      await page.locator('#edit-save:enabled').waitFor();
      const theirs = `# theirs\n${before}`;
      await writeFile(shopward.listFile, theirs);
      await save.click();
      await page.getByRole('alert').filter({ hasText: 'the file has changed since you read it' }).waitFor();
      expect(await readFile(shopward.listFile, 'utf8')).toBe(theirs);
      // What was typed stays, and shows what it would undo.
      await page.getByRole('button', { name: 'Keep my text, and compare it' }).click();
      await page.locator('#edit-result .diff.removed', { hasText: '# theirs' }).waitFor();
      expect(await textarea.inputValue()).toContain('# mine');
      await page.locator('#edit-save:enabled').waitFor();
      forgive('412');
    });
  });

  describe('the system', () => {
    it('shows parts, processes, keys and settings, and counts refresh tokens', async (context) => {
      const { open, page } = await openConsole(context);
      await open('system');
      await page.locator('#keys-body tr', { hasText: 'RS256' }).waitFor();
      await page.locator('#keys-about', { hasText: shop.jwksUrl }).waitFor();
      await page.getByText('1 of 1 process serves here').waitFor();
      await page.getByRole('button', { name: 'Count them' }).click();
      await page.locator('#tokens-result', { hasText: '0 logins' }).waitFor();
      await page.getByLabel('Search settings').fill('upstream.url');
      await page.getByText(/^1 setting of \d+$/).waitFor();
      expect(await page.locator('#config-list').textContent()).toContain(shop.url);
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
      await page.getByLabel('Search settings').fill('auth.issuers');
      expect(await page.locator('#config-list').textContent()).toContain(away);
      expect(await findAccessibilityFaults(page)).toEqual([]);
    });

    it('purges only what was confirmed', async (context) => {
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

  it('shows no secret, on the page or in any answer', async (context) => {
    const secrets = {
      auth: {
        keys: { jwks: undefined, secret: 'planted-hmac-secret-of-32-octets-and-more' },
        algorithms: ['HS256'],
      },
      admin: { token: 'planted-admin-token' },
      refreshTokens: { digestKey: 'planted-digest-key' },
      // Nobody answers there: its password is used, and shown to nobody, all the same.
      store: { url: `redis://planted-user:planted-password@127.0.0.1:${await freePort()}` },
    };
    const { forgive, page, shopward } = await openConsole(context, settings(secrets));
    const headers = { Authorization: 'Bearer planted-admin-token' };
    const places = [
      'state',
      'rows',
      'config',
      'system',
      'reasons',
      'decisions/search',
      'series',
      'list',
      'list/history',
    ];
    for (const place of [...places, 'refresh-tokens']) {
      const response = await fetch(`${shopward.adminUrl}/api/${place}`, { headers });
      expect(await response.text(), place).not.toContain('planted');
    }
    await page.goto(`${shopward.adminUrl}/#/system`);
    await page.locator('#token-input').fill('planted-admin-token');
    await page.locator('#token-input').press('Enter');
    await page.locator('#config-list dt').first().waitFor();
    await page.locator('#config-kind').selectOption('all');
    const shown = (await page.locator('#config-list').textContent()) ?? '';
    for (const name of ['auth.keys.secret', 'admin.token', 'refreshTokens.digestKey', 'store.url']) {
      expect(shown).toContain(name);
    }
    expect(await page.locator('#config-list [data-secret=true]').count()).toBe(4);
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

  it.for(['light', 'dark'] as const)(
    'fits a small phone in %s, with the editor open',
    async (colorScheme, context) => {
      const { decisions, open, page, shopward } = await openConsole(context);
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width: 320, height: 800 });
      await fetch(`${shopward.url}/${'long-'.repeat(15)}/${'x'.repeat(79)}`);
      await open('requests');
      const item = decisions().filter({ hasText: 'long-' }).first();
      await item.getByRole('button').click();
      await item.locator('.detail .pill').waitFor();
      const fits = async () => {
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(320);
        expect(await findAccessibilityFaults(page)).toEqual([]);
        expect(await findAxeFaults(page)).toEqual([]);
      };
      await fits();
      await open('list');
      await openEditor(page);
      await page.getByLabel('Text of the list').fill('groups:\n  A:\n    - GET /a\ncomplete: true\n');
      await page.getByRole('button', { name: 'Check and show' }).click();
      await page.locator('#edit-consent').waitFor();
      await fits();
      const background = await page.evaluate('getComputedStyle(document.body).backgroundColor');
      expect(background).toBe(colorScheme === 'dark' ? 'rgb(15, 19, 24)' : 'rgb(244, 245, 247)');
    },
  );
});
