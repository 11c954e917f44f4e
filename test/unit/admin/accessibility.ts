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

/**
 * Basic checks of WCAG 2.2 on the page as it is drawn: names of controls, landmarks, headings, ids, tables, contrast AA
 * of every text (4.5:1, 3:1 for large ones) and of the borders of controls (3:1). Each fault names its element.
 */
export async function findAccessibilityFaults(page: Page): Promise<string[]> {
  return page.evaluate(`(${inPage.toString()})()`);
}

/* Runs in the page; the compiler knows nothing of its globals. */
// biome-ignore lint/suspicious/noExplicitAny: globals of the browser
declare const document: any, getComputedStyle: any, NodeFilter: any;

function inPage(): string[] {
  const faults: string[] = [];
  // biome-ignore lint/suspicious/noExplicitAny: elements of the browser
  type Element = any;
  const all = (selector: string): Element[] => [...document.querySelectorAll(selector)];
  const isVisible = (element: Element) => element.checkVisibility({ visibilityProperty: true });
  const nameOf = (element: Element) =>
    `${element.localName}${element.id ? `#${element.id}` : ''}${element.className?.toString() ? `.${element.className}` : ''} "${element.textContent.trim().slice(0, 40)}"`;
  const complain = (element: Element, text: string) => faults.push(`${text}: ${nameOf(element)}`);

  for (const control of all('input, select, textarea').filter(isVisible)) {
    const label =
      control.getAttribute('aria-label') ?? [...control.labels].map((one) => one.textContent).join('');
    if (label.trim() === '') complain(control, 'a control without a label');
  }
  for (const button of all('button, a[href]').filter(isVisible)) {
    if ((button.getAttribute('aria-label') ?? button.textContent).trim() === '') complain(button, 'no name');
    const { width, height } = button.getBoundingClientRect();
    if (!button.classList.contains('skip') && (width < 24 || height < 20))
      complain(button, 'too small to be hit');
  }
  for (const image of all('svg[role=img], img')) {
    if (!(image.getAttribute('aria-label') ?? image.getAttribute('alt')))
      complain(image, 'an image without words');
  }
  const ids = all('[id]').map(({ id }) => id);
  for (const id of ids.filter((one, i) => ids.indexOf(one) !== i)) faults.push(`the id ${id} stands twice`);
  for (const element of all('[aria-labelledby], [for]')) {
    const id = element.getAttribute('aria-labelledby') ?? element.getAttribute('for');
    if (document.getElementById(id) === null) complain(element, `refers to ${id}, which is not there`);
  }
  if (all('main').length !== 1 || all('h1').length !== 1) faults.push('one main and one h1 are needed');
  if (!document.documentElement.lang) faults.push('the page names no language');
  let level = 1;
  for (const heading of all('main h2, main h3, main h4').filter(isVisible)) {
    const own = Number(heading.localName[1]);
    if (own > level + 1) complain(heading, 'a level of headings is left out');
    level = own;
  }
  for (const section of all('section')) {
    if (!section.getAttribute('aria-label') && !section.getAttribute('aria-labelledby'))
      complain(section, 'no name');
  }
  for (const table of all('table')) {
    if (table.caption === null || table.querySelector('th[scope=col]') === null)
      complain(table, 'no caption or head');
  }
  for (const element of all('[tabindex]').filter((one) => one.tabIndex > 0))
    complain(element, 'a tabindex above 0');

  type Colour = readonly [number, number, number, number];
  const parse = (text: string): Colour => {
    const [r = 0, g = 0, b = 0, a = 1] = (text.match(/[\d.]+/g) ?? []).map(Number);
    return [r, g, b, a];
  };
  const luminance = ([r, g, b]: Colour) => {
    const linear = (part: number) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  };
  const contrast = (one: Colour, other: Colour) => {
    const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const backgroundOf = (element: Element): Colour => {
    for (let one = element; one !== null; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    return [255, 255, 255, 1];
  };

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const element = node.parentElement;
    if (node.data.trim() === '' || !isVisible(element) || element.closest('svg, .hidden, noscript, option'))
      continue;
    // WCAG leaves out what cannot be used at the moment.
    if (element.closest(':disabled') !== null) continue;
    const style = getComputedStyle(element);
    const size = Number.parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const ratio = contrast(parse(style.color), backgroundOf(element));
    if (ratio < (isLarge ? 3 : 4.5)) complain(element, `contrast ${ratio.toFixed(2)}`);
  }
  for (const control of all('input, select, textarea, button').filter(isVisible)) {
    const ratio = contrast(
      parse(getComputedStyle(control).borderTopColor),
      backgroundOf(control.parentElement),
    );
    if (!control.disabled && control.type !== 'checkbox' && ratio < 3)
      complain(control, `border ${ratio.toFixed(2)}`);
  }
  return faults;
}
