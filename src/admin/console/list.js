import { byId, cut, el, pathCode, renew, say } from './dom.js';
import { problemItem } from './now.js';
import { startRows } from './rows.js';
import { ago, count, fullTime, plural } from './words.js';

/** The history is asked for in every 15th round, and in each one just after an edit. */
const historyEvery = 15;
/** Time in which the server has compared even two long lists. */
const comparedWithinMs = 20_000;

/** The protected list: its rows and their counts, routes where the shop disagrees with it, and its history. */
export function startList(api) {
  const refreshRows = startRows(api);
  let rounds = 0;
  let inForceSinceMs = 0;
  return {
    show(params) {
      if (params.get('show')) byId('row-kind').value = params.get('show');
      if (params.get('q') !== null) byId('row-search').value = params.get('q');
      rounds = 0;
      if (params.get('part') === 'drift') byId('drift').scrollIntoView();
    },
    async refresh(state) {
      showProblems(state);
      showDrift(state);
      const isNew = state.list.inForceSinceMs !== inForceSinceMs;
      inForceSinceMs = state.list.inForceSinceMs;
      await refreshRows(state.nowMs, { isStale: isNew });
      // An edit takes effect before it is compared, and only then the history has it.
      const isFresh = state.nowMs - inForceSinceMs < comparedWithinMs;
      if (isFresh || rounds % historyEvery === 0) await showHistory(api, state);
      rounds++;
    },
  };
}

function showProblems({ problems }) {
  renew(
    byId('list-problems'),
    problems.length === 0
      ? []
      : [
          el(
            'div',
            { class: 'banner bad' },
            el('strong', {}, 'The last edit is not in force; the last good version is'),
            el('ul', {}, problems.map(problemItem)),
          ),
        ],
  );
}

/** Where the shop's own protection and the list disagree. */
function showDrift({ drift: { unlisted }, nowMs }) {
  byId('drift-none').hidden = unlisted.length > 0;
  byId('drift-some').hidden = unlisted.length === 0;
  renew(
    byId('drift-body'),
    unlisted
      .slice(0, 50)
      .map(({ method, template, unauthorized, forbidden, passed, lastSeenMs }) =>
        el(
          'tr',
          {},
          el(
            'th',
            { scope: 'row' },
            el('span', { class: 'method', 'data-method': method }, method),
            ' ',
            pathCode(template),
          ),
          el('td', { class: 'number' }, count(unauthorized)),
          el('td', { class: 'number' }, count(forbidden)),
          el('td', { class: 'number' }, count(passed)),
          el('td', { class: 'secondary' }, ago(lastSeenMs, nowMs)),
        ),
      ),
  );
}

/** Edits of the list, the newest first. */
async function showHistory(api, { nowMs }) {
  const { edits } = await api.get('api/list/history');
  byId('history-none').hidden = edits.length > 0;
  const items = edits.map((edit) => editItem(edit, nowMs));
  renew(byId('history-list'), items.slice(0, newestEdits));
  const older = items.slice(newestEdits);
  byId('history-older').hidden = older.length === 0;
  say(byId('history-older-summary'), plural(older.length, 'older edit'));
  renew(byId('history-older-list'), older);
}

/** Edits that are shown at once; an edit of more rows than `fewRows` is folded. */
const newestEdits = 10;
const fewRows = 6;

function editItem({ atMs, rows, added, removed, changed, counts, looser }, nowMs) {
  const part = (kind, items) =>
    items.length > 0 && [
      el(
        'ul',
        { class: `difference ${kind}` },
        items.map((text) => el('li', {}, cut(text))),
      ),
      counts[kind] > items.length &&
        el('p', { class: 'quiet' }, `and ${count(counts[kind] - items.length)} more ${kind}`),
    ];
  const parts = [part('removed', removed), part('added', added), part('changed', changed)].flat();
  const isShort = counts.removed + counts.added + counts.changed <= fewRows;
  const isLooser = looser > 0;
  return el(
    'li',
    { 'data-looser': isLooser },
    el('time', { datetime: new Date(atMs).toISOString() }, fullTime(atMs)),
    ` (${ago(atMs, nowMs)}): ${plural(rows, 'row')} afterwards; `,
    `${count(counts.removed)} removed, ${count(counts.added)} added, ${count(counts.changed)} changed. `,
    isLooser
      ? el(
          'b',
          { class: 'fault' },
          `${plural(looser, 'route')} ${looser === 1 ? 'is' : 'are'} protected less than before.`,
        )
      : 'Nothing is protected less than before.',
    isShort ? parts : el('details', {}, el('summary', {}, 'These rows'), parts),
  );
}
