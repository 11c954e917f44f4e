import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** What axe-core finds against WCAG 2.2 A and AA and its own advice, each with its element. */
export async function findAxeFaults(page: Page, rules: keyof typeof axeOptions = 'all'): Promise<string[]> {
  // Not as a script of the page, which its policy would not run.
  if (!(await page.evaluate('globalThis.axe !== undefined'))) await page.evaluate(axe.source);
  const found = await page.evaluate<Pick<axe.AxeResults, 'violations'>>(
    `axe.run(document, ${JSON.stringify(axeOptions[rules])}).then(({ violations }) => ({ violations }))`,
  );
  return found.violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, any, all, none }) => {
      const why = [...any, ...all, ...none].map(({ message }) => message).join('; ');
      return `${id}: ${help}: ${html.slice(0, 200)} (${why})`;
    }),
  );
}

const axeOptions = {
  all: {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    rules: { 'target-size': { enabled: true } },
    resultTypes: ['violations'],
  },
  /** Those that look at colours: nothing else of a page depends on its colour scheme. */
  colours: {
    runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] },
    resultTypes: ['violations'],
  },
} satisfies Record<string, axe.RunOptions>;
