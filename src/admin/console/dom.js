/**
 * The only place that makes elements. Text becomes text nodes and attributes come from a closed list, so that nothing
 * a client of the shop sent can become markup.
 */

const attributes = new Set([
  'class',
  'id',
  'type',
  'href',
  'scope',
  'colspan',
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

/** A text of whatever length, short enough for a page; half a character at its end is left out. */
export function cut(text, most = longest) {
  return text.length > most ? `${text.slice(0, most).replace(/[\ud800-\udbff]$/, '')}…` : text;
}

/**
 * What cannot be seen, or turns the text around it the other way: controls, marks of direction, spaces without width, and
 * halves of characters. A name of a client or a row must not read as another one. Lines and tabs stay.
 */
const unseen = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;

/** The same text, with what cannot be seen by its number. */
export function visible(text) {
  return text.replace(unseen, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);
}

/** A path as code, which breaks after its slashes where it must. */
export function pathCode(path) {
  const steps = cut(path).split('/').slice(1);
  return el(
    'code',
    {},
    steps.map((step) => [el('wbr'), `/${step}`]),
  );
}

/** A text that was written for a page with `code` in it. */
export function withCode(text) {
  return text.split('`').map((part, i) => (i % 2 === 1 ? el('code', {}, part) : part));
}

/** Replaces what is in an element: for what has listeners of its own. */
export function show(element, ...children) {
  const shown = document.createDocumentFragment();
  for (const node of nodes(children)) shown.append(node);
  element.replaceChildren(shown);
}

/** Changes a text only where it differs: selections and screen readers stay where they are. */
export function say(element, text) {
  const wanted = visible(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/**
 * The same as `show`, but of what is there already only what differs is touched: the focus, a selection and a screen reader
 * stay where they are, however often this is called. What it is given must have no listeners.
 */
export function renew(element, ...children) {
  match(element, nodes(children));
}

function match(place, wanted) {
  for (const [i, node] of wanted.entries()) {
    const old = place.childNodes[i];
    if (old === undefined) place.append(node);
    else if (old.nodeName !== node.nodeName) old.replaceWith(node);
    else if (node.nodeType === Node.TEXT_NODE) {
      if (old.data !== node.data) old.data = node.data;
    } else {
      matchAttributes(old, node);
      match(old, [...node.childNodes]);
    }
  }
  while (place.childNodes.length > wanted.length) place.lastChild.remove();
}

function matchAttributes(old, wanted) {
  // Whether details are open is up to whoever looks.
  const names = old.getAttributeNames().filter((name) => name !== 'open' && !wanted.hasAttribute(name));
  for (const name of names) old.removeAttribute(name);
  for (const name of wanted.getAttributeNames()) {
    const value = wanted.getAttribute(name);
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

/** One child for each entry: made once, then only changed. */
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
