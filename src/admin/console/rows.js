import { byId, cut, el, pathCode, say, show } from './dom.js';
import { ago, count, fullTime, plural } from './words.js';

/** What is shown at first, so that the rest of the page stays in reach; and at most: longer lists are searched. */
const firstShown = 20;
const maxShown = 500;

/** The list in force with its counters. Returns what takes the newest `/api/rows`. */
export function startRows() {
  const body = byId('row-body');
  const search = byId('row-search');
  const kind = byId('row-kind');
  let list;
  let nowMs = 0;
  /** Id and line of a row -> its elements, so that counting does not build the table anew. */
  let elements = new Map();
  let shownKeys = '';
  let most = firstShown;

  const refresh = () => {
    if (list === undefined) return;
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = list.rows.filter(
      (row) => isKind(row, kind.value) && words.every((word) => textOf(row).includes(word)),
    );
    // Those that met a request first: the others have nothing to say yet.
    wanted.sort((a, b) => Number(b.requests > 0) - Number(a.requests > 0));
    const shown = wanted.slice(0, most);
    byId('row-more').hidden = shown.length === wanted.length || most === maxShown;
    say(
      byId('row-more'),
      wanted.length > maxShown ? `Show the first ${count(maxShown)}` : `Show all ${count(wanted.length)}`,
    );
    const keys = shown.map(keyOf).join('\n');
    if (keys !== shownKeys) {
      elements = new Map(shown.map((row) => [keyOf(row), elements.get(keyOf(row)) ?? rowElement(row)]));
      show(
        body,
        [...elements.values()].map(({ element }) => element),
      );
      shownKeys = keys;
    }
    for (const row of shown) elements.get(keyOf(row))?.update(row, nowMs);
    const more = wanted.length > shown.length ? `, the first ${count(shown.length)} are shown` : '';
    say(byId('row-count'), `${plural(wanted.length, 'row')} of ${count(list.rows.length)}${more}`);
    say(byId('list-about'), `${list.file}, in force since ${fullTime(list.inForceSinceMs)}`);
  };
  search.addEventListener('input', refresh);
  kind.addEventListener('change', refresh);
  byId('row-more').addEventListener('click', () => {
    most = maxShown;
    refresh();
  });

  return (next, now) => {
    if (list?.inForceSinceMs !== next.inForceSinceMs) {
      elements = new Map();
      shownKeys = '';
    }
    list = next;
    nowMs = now;
    refresh();
  };
}

function rowElement(row) {
  const requests = el('td', { class: 'number' });
  const refusals = el('td', { class: 'secondary' });
  /** Stands in for the column, which has no room on a phone. */
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
      row.scopes.length > 0 && el('span', { class: 'tag' }, cut(`scopes ${row.scopes.join(' ')}`, 160)),
      row.observe && el('span', { class: 'tag observe' }, 'observe'),
      narrow,
    ),
    el(
      'td',
      { class: 'secondary' },
      el('bdi', {}, cut(row.group, 160)),
      el('span', { class: 'quiet' }, ` · line ${row.line}`),
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

function isKind({ requests, refusals, observed, observe }, kind) {
  switch (kind) {
    case 'met':
      return requests > 0;
    case 'unmet':
      return requests === 0;
    case 'refused':
      return Object.keys(refusals).length + Object.keys(observed).length > 0;
    case 'observing':
      return observe;
    default:
      return true;
  }
}

const keyOf = ({ id, line }) => `${line} ${id}`;
const textOf = ({ id, group, scopes }) => `${id} ${group} ${scopes.join(' ')}`.toLowerCase();
