import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** Runs axe-core: violations of WCAG 2.2 A and AA and of its best practices, each with its element. */
export async function findAxeFaults(page: Page, rules: keyof typeof axeOptions = 'all'): Promise<string[]> {
  // Evaluated: the page's policy would block a script element.
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
  /** Rules about colours: nothing else depends on the colour scheme. */
  colours: {
    runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] },
    resultTypes: ['violations'],
  },
} satisfies Record<string, axe.RunOptions>;
