import { byId, cut, docLink, el, renew, trendLine, withCode, withDocLinks } from './dom.js';
import { addressOf } from './router.js';
import { ago, count, fullTime, plural, sentence as sentenceOf } from './words.js';

/** For each verdict of the report: its status, its words, and its sentence. */
const verdicts = {
  refuses: {
    status: 'degraded',
    words: 'Would refuse requests',
    sentence: 'Not safe to enforce: requests would be refused.',
  },
  'not-known': {
    status: 'notice',
    words: 'Not known yet',
    sentence: 'Not known yet whether it is safe to enforce.',
  },
  'not-asked': {
    status: 'notice',
    words: 'No requests',
    sentence: 'No request would be refused, but some rows had none yet.',
  },
  safe: {
    status: 'ok',
    words: 'Safe to enforce',
    sentence: 'Safe to enforce: 0 would-be refusals for seven days.',
    next: 'Set mode: enforce, or remove observe from these rows one at a time: docs/rollout.md#3-enforce-row-by-row.',
  },
  enforced: { status: 'ok', words: 'Enforced', sentence: 'Everything is enforced.' },
};

/** Maximum number of rows that are shown, the worst first; the rest is only counted. */
const mostShown = 100;

/** Shows `GET /api/rollout`: whether it is safe to enforce, which requests would be refused, since when, and what to do. */
export function startRollOut(api) {
  return {
    show() {},
    async refresh() {
      const report = await api.getPaced(`api/rollout?limit=${mostShown}`).catch((fault) => {
        if (fault.status !== 404) throw fault;
        return undefined;
      });
      const { status, sentence, more } = report === undefined ? switchedOff : answerOf(report);
      const card = byId('roll-out-sentence');
      card.dataset.status = status;
      renew(card, el('p', { class: 'say' }, sentence), el('p', { class: 'muted' }, withDocLinks(more)));
      renew(byId('roll-out-list'), report === undefined ? [] : itemsOf(report));
    },
  };
}

const switchedOff = {
  status: 'notice',
  sentence: 'Nothing is counted: rollout is false.',
  more: 'Remove that line from the configuration to see which requests would be refused.',
};

function answerOf({ verdict, text, wholeSinceMs, why, problems, causes }) {
  const { sentence } = verdicts[verdict];
  // Counts with gaps do not prove that it is safe.
  const status =
    problems.length > 0 && verdicts[verdict].status === 'ok' ? 'notice' : verdicts[verdict].status;
  const more = [
    verdict !== 'enforced' && sentenceOf(text),
    verdict === 'refuses' &&
      `Of these requests ${count(causes.client)} need a change of a client, ${count(causes.setting)} of a setting, ${count(causes.either)} of either.`,
    wholeSinceMs !== null && `Counted without a gap since ${fullTime(wholeSinceMs)} (${why}).`,
    ...problems.map((problem) => sentenceOf(problem)),
    verdicts[verdict].next,
  ];
  return { status, sentence, more: more.filter(Boolean).join(' ') };
}

/** A table of the refusals, a line for each row and reason; then one of all other rows. */
function itemsOf({ rows, found, nowMs }) {
  const lines = rows
    .filter(({ verdict }) => verdict === 'refuses')
    .flatMap(({ row, reasons }) =>
      reasons.filter(({ kind }) => kind === 'observed').map((reason) => reasonLine(row, reason, nowMs)),
    );
  const groups = groupsOf(rows.filter(({ verdict }) => verdict !== 'refuses'));
  const left = found - rows.length;
  return [
    lines.length > 0 && table('Would be refused', reasonColumns, lines),
    groups.length > 0 && table(lines.length > 0 ? 'Other rows' : 'Rows', groupColumns, groups.map(groupLine)),
    left > 0 &&
      el(
        'p',
        { class: 'about' },
        `${plural(left, 'more row')}: `,
        el('code', {}, 'shopward rollout'),
        ' prints all.',
      ),
  ].filter(Boolean);
}

/** Rows with the same text, in the order of the report. */
function groupsOf(rows) {
  const groups = new Map();
  for (const { row, verdict, text } of rows) {
    // Safe rows differ only in the number of requests.
    const key = verdict === 'safe' ? verdict : text;
    if (!groups.has(key)) groups.set(key, { verdict, text, rows: [] });
    groups.get(key).rows.push({ row, text });
  }
  return [...groups.values()];
}

const reasonColumns = [
  ['Row', 'about-row'],
  ['Requests', 'number'],
  ['Last seven days', 'trend secondary'],
  ['Clients', 'who'],
  ['What has to change', ''],
];
const groupColumns = [
  ['Verdict', 'verdict'],
  ['Rows', ''],
];

function table(title, columns, lines) {
  return el(
    'section',
    { class: 'card', 'aria-label': title },
    el('h3', {}, title),
    el(
      'table',
      { class: 'roll-out' },
      el('caption', { class: 'hidden' }, title),
      el(
        'thead',
        {},
        el(
          'tr',
          {},
          columns.map(([name, kind]) => el('th', { scope: 'col', class: kind }, name)),
        ),
      ),
      el('tbody', {}, lines),
    ),
  );
}

function groupLine({ verdict, text, rows }) {
  const { words, status } = verdicts[verdict];
  const isOne = rows.length === 1;
  const isSame = rows.every((one) => one.text === text);
  const names = el(
    'ul',
    { class: 'rows' },
    rows.map((one) =>
      el('li', {}, el('code', {}, cut(nameOf(one.row))), !isSame && ` ${withoutVerdict(one.text)}`),
    ),
  );
  return el(
    'tr',
    {},
    el('th', { scope: 'row' }, el('span', { class: 'pill', 'data-status': status }, words)),
    el(
      'td',
      {},
      isOne ? names : el('details', {}, el('summary', {}, plural(rows.length, 'row')), names),
      isSame && el('p', { class: 'about' }, sentenceOf(withoutVerdict(text))),
      isOne && refusedLink(verdict, rows[0].row),
    ),
  );
}

/** A link to the refused requests of an enforced row. */
function refusedLink(verdict, row) {
  if (verdict !== 'enforced') return false;
  const [, template = row] = row.split(' ');
  return el(
    'p',
    {},
    el('a', { href: addressOf('requests', { outcome: 'refused', row: template }) }, 'Look at these requests'),
  );
}

/** The text without the verdict at its beginning, which the title has already. */
function withoutVerdict(text) {
  return text.replace(/^[^:]*: /, '');
}

const nameOf = (row) => (row === '*' ? 'requests that no row names' : row);

const changes = {
  client: 'Change the client',
  setting: 'Change a setting',
  either: 'Change the client or a setting',
};

function reasonLine(row, found, nowMs) {
  const { rejection, reason, cause, requests, clients, sinceMs, lastSeenMs, days, next, more } = found;
  const [, template = row] = row.split(' ');
  const name =
    reason === undefined || rejection.endsWith(`-${reason}`) ? rejection : `${rejection} (${reason})`;
  const about = addressOf('requests', { outcome: 'observed', row: template, reason: reason ?? rejection });
  return el(
    'tr',
    {},
    el(
      'th',
      { scope: 'row' },
      el('code', {}, cut(nameOf(row))),
      el('span', { class: 'about' }, el('b', {}, name)),
      el('span', { class: 'about' }, `Since ${fullTime(sinceMs)}, last seen ${ago(lastSeenMs, nowMs)}`),
    ),
    el('td', { class: 'number' }, count(requests)),
    el(
      'td',
      { class: 'trend secondary' },
      trendLine(days, 'observed'),
      el('span', { class: 'hidden' }, `${days.slice(0, -1).join(', ')}, `),
      el('span', { class: 'about' }, `${count(days.at(-1))} today`),
    ),
    el('td', { class: 'who' }, clientsOf(clients)),
    el(
      'td',
      {},
      el('b', {}, `${changes[cause]}: `),
      withCode(next),
      el(
        'span',
        { class: 'about' },
        el('a', { href: about }, 'Look at these requests'),
        ' · ',
        docLink(more),
      ),
    ),
  );
}

/** Maximum number of clients that are shown at once. */
const mostClients = 2;

function clientsOf({ count: all, areMore, named }) {
  const many = `${areMore ? 'more than ' : ''}${plural(all, 'client')}`;
  return el(
    all > mostClients || areMore ? 'details' : 'div',
    {},
    (all > mostClients || areMore) && el('summary', {}, many),
    el(
      'ul',
      { class: 'clients' },
      named.map(({ application, userAgent, requests }) =>
        el(
          'li',
          {},
          application !== '' && [el('bdi', {}, el('b', {}, cut(application, 160))), ', '],
          el('bdi', {}, userAgent === '' ? 'no User-Agent' : cut(userAgent, 160)),
          all > 1 && `: ${plural(requests, 'request')}`,
        ),
      ),
    ),
  );
}
