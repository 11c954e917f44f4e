import { breakable, cut, el, show } from './dom.js';
import { explainRequest, reasonParagraphs, reasonText } from './explanation.js';
import { addressOf } from './router.js';
import { clockTime, fullTime, millis } from './words.js';

let lastId = 0;

/** A decision as one line that opens to its explanation; `onOpen` is called at each opening. */
export function decisionItem(api, decision, onOpen) {
  const { atMs, method, path, status, outcome, route, clientAddress, durationMs } = decision;
  const id = `decision-${++lastId}`;
  const detail = el('div', { class: 'detail', id });
  detail.hidden = true;
  const button = el(
    'button',
    { type: 'button', class: 'line', 'aria-expanded': 'false', 'aria-controls': id },
    el('time', { datetime: new Date(atMs).toISOString(), title: fullTime(atMs) }, clockTime(atMs)),
    el('span', { class: 'status' }, status === 0 ? 'left' : status),
    el('span', { class: 'request' }, el('b', {}, method), ' ', cut(path || '(not readable)', 160)),
    el('span', { class: 'why' }, whyText(decision)),
    el('span', { class: 'row' }, route === '*' ? 'no row' : breakable(cut(route, 80))),
    el('span', { class: 'client' }, cut(clientAddress, 45)),
    el('span', { class: 'took number' }, millis(durationMs)),
  );
  button.addEventListener('click', () => {
    const isOpen = detail.hidden;
    detail.hidden = !isOpen;
    button.setAttribute('aria-expanded', String(isOpen));
    if (!isOpen) return;
    onOpen();
    if (detail.childElementCount === 0) void fillDetail(api, decision, detail);
  });
  return el('li', { class: 'decision', 'data-outcome': outcome }, button, detail);
}

/** The outcome and its reason, in the words of the charts. */
function whyText({ outcome, decision, rejection, observed, reason, fault }) {
  // `access-token-missing (missing)` would say the same twice.
  const isSaid = reason === undefined || (rejection ?? observed)?.endsWith(`-${reason}`);
  const because = isSaid ? '' : ` (${reason})`;
  const broke = fault === undefined ? '' : `, fault ${fault}`;
  if (outcome === 'failed') return `failed: ${rejection ?? 'the answer of the shop'}${because}${broke}`;
  if (rejection !== undefined)
    return `${outcome === 'refused' ? 'refused' : 'answered'}: ${rejection}${because}${broke}`;
  if (observed !== undefined) return `would be refused: ${observed}${because}`;
  return `${passedWords[decision] ?? decision}${broke}`;
}

/** Decisions that are neither refused nor failed, in the words of the search and the charts. */
const passedWords = {
  forwarded: 'passed',
  answered: 'passed: answered here',
  aborted: 'passed: the client left',
};

async function fillDetail(api, decision, detail) {
  const { atMs, method, route, requestId, clientAddress, durationMs, upstreamMs, rejection, observed } =
    decision;
  const took =
    upstreamMs === undefined
      ? `${millis(durationMs)}, all of it here`
      : `${millis(durationMs)}: the shop ${millis(upstreamMs)}, here ${millis(Math.max(0, durationMs - upstreamMs))}`;
  const facts = [
    ['Time', fullTime(atMs)],
    ['Request id', link(requestId, { id: requestId })],
    ['Row', route === '*' ? 'none' : link(route, { row: route })],
    ['Client', link(clientAddress, { client: clientAddress })],
    ['Took', took],
  ];
  const about = el('div', { class: 'reason' });
  const explained = el('div', {}, el('p', { class: 'muted' }, 'Explaining the request…'));
  show(
    detail,
    about,
    el(
      'dl',
      { class: 'explanation' },
      facts.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))),
    ),
    el('h3', {}, 'Explained by the list in force'),
    explained,
  );
  const name = rejection ?? observed;
  if (name !== undefined) void showReason(api, name, decision, about);
  try {
    // As a log record: a malformed request cannot be repeated, but its record says why it was refused.
    const { outcome: _, ...record } = decision;
    show(
      explained,
      await explainRequest(api, { method: method === 'other' ? 'GET' : method, url: JSON.stringify(record) }),
    );
  } catch (fault) {
    show(explained, el('p', { class: 'fault' }, fault.message));
  }
}

async function showReason(api, name, { reason }, parent) {
  const text = await reasonText(api, name, reason);
  show(
    parent,
    el('p', {}, link(name, { reason: name }), reason !== undefined && ` (${reason})`),
    text && reasonParagraphs(text),
  );
}

function link(text, params) {
  return el('a', { href: addressOf('requests', params) }, cut(text, 120));
}
