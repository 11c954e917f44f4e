import { byId, el, pathCode, say, show } from './dom.js';
import { ago, count, plural } from './words.js';

/** Where the shop's own protection and the list disagree. */
export function showDrift({ drift, list, nowMs }) {
  const { unlisted, unmet } = drift;
  byId('drift-none').hidden = unlisted.length > 0;
  byId('drift-table').hidden = unlisted.length === 0;
  show(
    byId('drift-body'),
    unlisted.map(({ method, template, unauthorized, forbidden, passed, lastSeenMs }) =>
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
  const text =
    unmet === 0
      ? 'Every row of the list was met by a request since the start.'
      : `${plural(unmet, 'row')} of ${count(list.rows)} ${unmet === 1 ? 'was' : 'were'} never met by a request since the start: choose "never met" above the list to see them.`;
  say(byId('drift-unmet'), text);
}
