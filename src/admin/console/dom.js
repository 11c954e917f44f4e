/**
 * Elements are made only here. Text becomes text nodes and attributes come from a closed list, so that nothing
 * a client of the shop sent can become markup.
 */

const attributes = new Set([
  'class',
  'id',
  'type',
  'href',
  'target',
  'scope',
  'colspan',
  'rowspan',
  'title',
  'datetime',
  'for',
  'role',
  'tabindex',
  'value',
  'selected',
  'aria-label',
  'aria-hidden',
  'aria-describedby',
  'aria-expanded',
  'aria-controls',
  'aria-valuemin',
  'aria-valuemax',
  'aria-valuenow',
  'aria-valuetext',
]);

/** @param {string} id */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found;
}

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * @param {string} name
 * @param {Record<string, string | number | boolean | undefined>} given `data-*` and the attributes above
 * @param {...(Child | Child[])} children
 */
export function el(name, given = {}, ...children) {
  const element = document.createElement(name);
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === false) continue;
    if (!attributes.has(name) && !name.startsWith('data-')) throw new Error(`no such attribute: ${name}`);
    element.setAttribute(name, visible(String(value)));
  }
  for (const node of nodes(children)) element.append(node);
  return element;
}

const longest = 300;

/** Cuts a text to `most` UTF-16 units, without leaving half a surrogate pair at its end. */
export function cut(text, most = longest) {
  return text.length > most ? `${text.slice(0, most).replace(/[\ud800-\udbff]$/, '')}…` : text;
}

/**
 * Invisible characters, and those that reverse the text around them: control characters, direction marks, zero-width
 * spaces and lone surrogates. With them one client or row could pass for another. Line feeds and tabs stay.
 */
const unseen = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

/** The text with invisible characters written as their code points, `\u{202e}`. */
export function visible(text) {
  return text.replace(unseen, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);
}

/** A path as code; a line may break before each slash. */
export function pathCode(path) {
  return el('code', {}, breakable(cut(path)));
}

/** A path as plain text; a line may break before each slash. */
export function breakable(path) {
  return path.split(/(?=\/)/).flatMap((step) => [el('wbr'), step]);
}

/** A text whose `code` in backquotes becomes elements. */
export function withCode(text) {
  return text.split('`').map((part, i) => (i % 2 === 1 ? el('code', {}, part) : part));
}

/** A link to a section such as `docs/redis.md#replicas`, which this port serves; in a new tab, to keep this page. */
export function docLink(href, text = href, label = undefined) {
  return el('a', { href, target: '_blank', 'aria-label': label }, text);
}

/** A text whose references to sections of docs/ become links. */
export function withDocLinks(text) {
  return text.split(/(docs\/[a-z-]+\.md(?:#[\w-]+)?)/).map((part, i) => (i % 2 === 1 ? docLink(part) : part));
}

/** Replaces the content of an element. For content with event listeners. */
export function show(element, ...children) {
  const shown = document.createDocumentFragment();
  for (const node of nodes(children)) shown.append(node);
  element.replaceChildren(shown);
}

/** Sets a text only if it differs, so that a selection or a screen reader keeps its position. */
export function say(element, text) {
  const wanted = visible(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/**
 * As `show`, but changes only the differences, so that focus, selection and screen reader keep their position. The children
 * must have no event listeners.
 */
export function renew(element, ...children) {
  match(element, nodes(children));
}

function match(parent, wanted) {
  for (const [i, node] of wanted.entries()) {
    const old = parent.childNodes[i];
    if (old === undefined) parent.append(node);
    else if (old.nodeName !== node.nodeName) old.replaceWith(node);
    else if (node.nodeType === Node.TEXT_NODE) {
      if (old.data !== node.data) old.data = node.data;
    } else {
      matchAttributes(old, node);
      match(old, [...node.childNodes]);
    }
  }
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}

function matchAttributes(old, wanted) {
  // The reader decides whether <details> are open.
  const names = old.getAttributeNames().filter((name) => name !== 'open' && !wanted.hasAttribute(name));
  for (const name of names) old.removeAttribute(name);
  for (const name of wanted.getAttributeNames()) {
    const value = wanted.getAttribute(name);
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

/** Keeps one child for each entry: `build` makes it once, then `change` updates it. */
export function keep(element, entries, build, change, name = 'div') {
  if (element.childElementCount !== entries.length) {
    show(
      element,
      entries.map((entry) => el(name, {}, build(entry))),
    );
  }
  for (const [i, entry] of entries.entries()) change(entry, element.children[i]);
}

function nodes(children) {
  return children
    .flat(2)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(visible(String(child)))));
}

const svg = 'http://www.w3.org/2000/svg';
const [trendWidth, trendHeight] = [96, 22];

/** A small line of values; the text beside it gives the numbers. */
export function trendLine(values, mark) {
  const most = values.reduce((one, next) => Math.max(one, next), 1);
  const points = values.map(
    (value, i) =>
      `${((i * trendWidth) / Math.max(1, values.length - 1)).toFixed(1)},${(trendHeight - 1 - (value / most) * (trendHeight - 2)).toFixed(1)}`,
  );
  const line = document.createElementNS(svg, 'polyline');
  line.setAttribute('points', points.join(' '));
  const image = document.createElementNS(svg, 'svg');
  image.setAttribute('viewBox', `0 0 ${trendWidth} ${trendHeight}`);
  image.setAttribute('preserveAspectRatio', 'none');
  image.setAttribute('class', 'trend-line');
  image.setAttribute('data-mark', mark);
  image.setAttribute('aria-hidden', 'true');
  image.append(line);
  return image;
}
