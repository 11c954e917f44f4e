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
  'aria-label',
  'aria-hidden',
  'aria-describedby',
  'viewBox',
  'x',
  'y',
  'x1',
  'x2',
  'y1',
  'y2',
  'width',
  'height',
  'preserveAspectRatio',
  'text-anchor',
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
  return fill(document.createElement(name), given, children);
}

/** As `el`, for SVG. */
export function svg(name, given = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), given, children);
}

function fill(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === false) continue;
    if (!attributes.has(name) && !name.startsWith('data-')) throw new Error(`no such attribute: ${name}`);
    element.setAttribute(name, String(value));
  }
  element.append(...nodes(children));
  return element;
}

/** A path as code, which breaks behind its slashes where it must. */
export function pathCode(path) {
  const steps = path.split('/').slice(1);
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

function nodes(children) {
  return children
    .flat(2)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
}
