import { expect, it } from 'vitest';
import { openConsole, settings, useConsole } from './console-page.ts';

/** Limit of all key presses. A person presses some three per second. */
const mostKeys = 25;

useConsole();

const title = 'the keyboard alone leads from the first screen to why a request was refused';
it(title, { timeout: 180_000 }, async (context) => {
  const { page, shopward } = await openConsole(context, { ...settings(), rows: ['GET /orders/{id}'] });
  for (let i = 0; i < 60; i++) await (await fetch(`${shopward.url}/orders/${i}`)).arrayBuffer();
  await page.goto(`${shopward.adminUrl}/`);
  await page.locator('#sentence[data-status="degraded"]').waitFor();
  let keys = 0;
  const press = async (key: string) => {
    keys++;
    await page.keyboard.press(key);
  };
  const tabTo = async (wanted: string) => {
    for (let i = 0; i < mostKeys; i++) {
      await press('Tab');
      // The focus is visible.
      expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).not.toBe('none');
      if (await page.evaluate<boolean>(`document.activeElement.matches(${JSON.stringify(wanted)})`)) return;
    }
    throw new Error(`${mostKeys} keys do not lead to ${wanted}`);
  };
  await press('Tab');
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content');
  await press('Enter');
  await tabTo('#sentence a');
  await press('Enter');
  await page.locator('#decisions > li').first().waitFor();
  // Screen readers announce the heading.
  await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('requests-title');
  await tabTo('#decisions button');
  await press('Enter');
  const first = page.locator('#decisions > li').first();
  await first.getByText('What to do: ').waitFor();
  await first.locator('.pill', { hasText: 'Protected' }).waitFor();
  expect(keys).toBeLessThanOrEqual(mostKeys);
  const tree = await page.locator('#decisions').ariaSnapshot();
  expect(tree).toMatch(/list "Decisions, the newest first"/);
  expect(tree).toMatch(/button ".*401.*GET \/orders\/\d+.*refused: access-token-missing .*" \[expanded\]/);
  expect(tree).toContain('heading "Explained by the list in force"');
  // A chip is a link with a name, not only a picture.
  expect(await page.locator('#search-common').ariaSnapshot()).toContain('link "access-token-missing 60"');
});
