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
    element.setAttribute(name, String(value));
  }
  element.append(...nodes(children));
  return element;
}

const longest = 300;

/** A text of whatever length, short enough for a page. */
export function cut(text, most = longest) {
  return text.length > most ? `${text.slice(0, most)}…` : text;
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

/** Replaces what is in an element. */
export function show(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/** Changes a text only where it differs: selections and screen readers stay where they are. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const shown = new WeakMap();

/** Builds anew only what differs, so that a selection or a screen reader is not thrown out every other second. */
export function showOnce(element, fingerprint, build) {
  if (shown.get(element) === fingerprint) return;
  shown.set(element, fingerprint);
  show(element, build());
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
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}
