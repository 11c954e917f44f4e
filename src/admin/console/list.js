import { byId, el, pathCode, renew } from './dom.js';
import { problemItem } from './now.js';
import { startRows } from './rows.js';
import { ago, count } from './words.js';

/** The protected list: its rows with their counts, and routes where the shop disagrees with the list. */
export function startList(api) {
  const refreshRows = startRows(api);
  let inForceSinceMs = 0;
  return {
    show(params) {
      if (params.get('show')) byId('row-kind').value = params.get('show');
      if (params.get('q') !== null) byId('row-search').value = params.get('q');
      if (params.get('part') === 'drift') byId('drift').scrollIntoView();
    },
    async refresh(state) {
      showProblems(state);
      showDrift(state);
      const isNew = state.list.inForceSinceMs !== inForceSinceMs;
      inForceSinceMs = state.list.inForceSinceMs;
      await refreshRows(state.nowMs, { isStale: isNew });
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
