import { byId, cut, el, pathCode, say, show } from './dom.js';
import { ago, count, fullTime, plural } from './words.js';

/** Rows that are shown at first, to keep what follows in reach, and rows shown at most: search finds the others. */
const firstShown = 20;
const maxShown = 500;

/** Pause in typing before the search starts. */
const typingMs = 200;

/** The list in force with its counters: the server searches it, and sends only the rows that are shown. */
export function startRows(api) {
  const body = byId('row-body');
  const search = byId('row-search');
  const kind = byId('row-kind');
  let nowMs = 0;
  let inForceSinceMs;
  /** Line and id of a row -> its elements, so that new counts do not rebuild the table. */
  let elements = new Map();
  let shownKeys = '';
  let most = firstShown;
  /** Answers may arrive out of order: only the answer to the last question counts. */
  let asked = 0;

  const showRows = (found) => {
    if (inForceSinceMs !== found.inForceSinceMs) {
      elements = new Map();
      shownKeys = '';
      inForceSinceMs = found.inForceSinceMs;
    }
    byId('row-more').hidden = found.next === null || most === maxShown;
    say(
      byId('row-more'),
      found.found > maxShown ? `Show the first ${count(maxShown)}` : `Show all ${count(found.found)}`,
    );
    const keys = found.rows.map(keyOf).join('\n');
    if (keys !== shownKeys) {
      elements = new Map(found.rows.map((row) => [keyOf(row), elements.get(keyOf(row)) ?? rowElement(row)]));
      show(
        body,
        [...elements.values()].map(({ element }) => element),
      );
      shownKeys = keys;
    }
    for (const row of found.rows) elements.get(keyOf(row))?.update(row, nowMs);
    const more = found.next === null ? '' : `, the first ${count(found.rows.length)} are shown`;
    say(byId('row-count'), `${plural(found.found, 'row')} of ${count(found.total)}${more}`);
    say(byId('list-about'), `${found.file}, in force since ${fullTime(found.inForceSinceMs)}`);
  };
  const load = async (options) => {
    const number = ++asked;
    const wanted = { q: search.value.trim(), kind: kind.value, order: 'met', limit: most };
    const found = await api.getPaced(`api/rows?${new URLSearchParams(wanted)}`, options);
    if (number === asked) showRows(found);
  };
  const attempt = () => void load().catch((fault) => say(byId('row-count'), fault.message));
  let typing;
  search.addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(attempt, typingMs);
  });
  kind.addEventListener('change', attempt);
  byId('row-more').addEventListener('click', () => {
    most = maxShown;
    attempt();
  });
  return (now, options) => {
    nowMs = now;
    return load(options);
  };
}

function rowElement(row) {
  const requests = el('td', { class: 'number' });
  const refusals = el('td', { class: 'secondary' });
  /** Replaces the column on a phone, which has no room for it. */
  const narrow = el('span', { class: 'narrow' });
  const seen = el('td', { class: 'secondary' });
  const element = el(
    'tr',
    {},
    el(
      'th',
      { scope: 'row' },
      el('span', { class: 'method', 'data-method': row.method }, row.method),
      ' ',
      pathCode(row.template),
      row.scopes.length > 0 && [
        ' ',
        el('span', { class: 'tag' }, cut(`scopes ${row.scopes.join(' ')}`, 160)),
      ],
      row.observe && [' ', el('span', { class: 'tag observe' }, 'observe')],
      narrow,
    ),
    el(
      'td',
      { class: 'secondary' },
      el('bdi', {}, cut(row.group, 160)),
      el('span', { class: 'muted' }, ` · line ${row.line}`),
    ),
    requests,
    refusals,
    seen,
  );
  return {
    element,
    update(now, nowMs) {
      say(requests, count(now.requests));
      say(refusals, refusalText(now));
      say(narrow, refusalText(now));
      say(seen, now.lastSeenMs === null ? 'never' : ago(now.lastSeenMs, nowMs));
      element.classList.toggle('unmet', now.requests === 0);
    },
  };
}

function refusalText({ refusals, observed, outages }) {
  const enforced = Object.entries(refusals).map(([name, times]) => `${count(times)} ${name}`);
  const noted = Object.entries(observed).map(([name, times]) => `${count(times)} ${name} (would be)`);
  const broken = Object.entries(outages).map(([name, times]) => `${count(times)} ${name} (outage)`);
  return [...enforced, ...noted, ...broken].join(', ');
}

const keyOf = ({ id, line }) => `${line} ${id}`;
