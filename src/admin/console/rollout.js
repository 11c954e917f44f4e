import { byId, cut, el, renew, trendLine, withCode } from './dom.js';
import { addressOf } from './router.js';
import { ago, count, fullTime, minuteTime, plural, sentence as sentenceOf } from './words.js';

/** For each verdict of the report: its status, the title of a group, and the sentence. */
const verdicts = {
  refuses: {
    status: 'degraded',
    group: 'Would refuse somebody',
    sentence: 'Not safe to enforce: somebody would be refused.',
  },
  'not-known': {
    status: 'notice',
    group: 'Not known yet',
    sentence: 'Not known yet whether it is safe to enforce.',
  },
  'not-asked': {
    status: 'notice',
    group: 'Nobody asked',
    sentence: 'Nobody would be refused, but some rows had no request yet.',
  },
  safe: {
    status: 'ok',
    group: 'Safe to enforce',
    sentence: 'Safe to enforce: 0 would-be refusals for seven days.',
    next: 'Set mode: enforce, or take observe off these rows one at a time: docs/rollout.md, "Enforce, row by row".',
  },
  enforced: { status: 'ok', group: 'Enforced', sentence: 'Everything is enforced.' },
};

/** Rows that are shown with their reasons; the rest is counted. */
const mostShown = 50;

/** Shows `GET /api/rollout`: whether it is safe to enforce, who would be refused, where, since when, and what to do. */
export function startRollOut(api) {
  return {
    show() {},
    async refresh() {
      const report = await api.getPaced(`api/rollout?verdict=refuses&limit=${mostShown}`).catch((fault) => {
        if (fault.status !== 404) throw fault;
        return undefined;
      });
      const { status, sentence, more } = report === undefined ? switchedOff : answerOf(report);
      const card = byId('roll-out-sentence');
      card.dataset.status = status;
      renew(card, el('p', { class: 'say' }, sentence), el('p', { class: 'quiet' }, more));
      renew(byId('roll-out-list'), report === undefined ? [] : itemsOf(report));
    },
  };
}

const switchedOff = {
  status: 'notice',
  sentence: 'Nothing is counted: rollout is false.',
  more: 'Take that line out of the configuration to see who would be refused.',
};

function answerOf({ verdict, text, wholeSinceMs, why, problems, causes, rows }) {
  const { sentence } = verdicts[verdict];
  // Counts with gaps are no proof that it is safe.
  const status =
    problems.length > 0 && verdicts[verdict].status === 'ok' ? 'notice' : verdicts[verdict].status;
  const more = [
    verdict !== 'enforced' && sentenceOf(text),
    verdict === 'refuses' &&
      `Of these requests ${count(causes.client)} need a change of a client, ${count(causes.setting)} of a setting, ${count(causes.either)} of either.`,
    wholeSinceMs !== null && `Counted without a gap since ${fullTime(wholeSinceMs)} (${why}).`,
    ...problems.map((problem) => sentenceOf(inOurTimes(problem))),
    verdicts[verdict].next,
    rows.some(namesDigests) &&
      'Clients of twelve digits are digests that tell them apart; tokens with client_id, azp or cid name their application.',
  ];
  return { status, sentence, more: more.filter(Boolean).join(' ') };
}

function namesDigests({ reasons }) {
  return reasons.some(({ clients }) => clients.named.some(({ client }) => /^[0-9a-f]{12}$/.test(client)));
}

/** A table of what would be refused, a line for each row and reason; then one of all other rows. */
function itemsOf({ rows, found, groups, nowMs }) {
  const lines = rows.flatMap(({ row, reasons }) =>
    reasons.filter(({ kind }) => kind === 'observed').map((reason) => reasonLine(row, reason, nowMs)),
  );
  const left = found - rows.length;
  return [
    lines.length > 0 && table('Would be refused', reasonColumns, lines),
    left > 0 &&
      el(
        'p',
        { class: 'about' },
        `${plural(left, 'more row')} would refuse somebody: shopward rollout has all.`,
      ),
    groups.length > 0 && table('Other rows', groupColumns, groups.map(groupLine)),
  ].filter(Boolean);
}

const reasonColumns = [
  ['Row', ''],
  ['Requests', 'number'],
  ['Last seven days', 'trend secondary'],
  ['Clients', 'secondary'],
  ['What has to change', ''],
];
const groupColumns = [
  ['Verdict', ''],
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

/** `text` is that of each of these rows, empty where they differ. */
function groupLine({ verdict, text, rows, named }) {
  const { group, status } = verdicts[verdict];
  const said = text || (rows === 1 ? named[0].text : '');
  const left = rows - named.length;
  const about = said !== '' && el('p', { class: 'about' }, sentenceOf(withoutVerdict(said)));
  const all = el(
    'ul',
    { class: 'rows' },
    named.map(({ row, text: own }) =>
      el('li', {}, el('code', {}, cut(nameOf(row))), rows > 1 && text === '' && ` ${withoutVerdict(own)}`),
    ),
    left > 0 && el('li', {}, `and ${count(left)} more`),
  );
  return el(
    'tr',
    {},
    el('th', { scope: 'row' }, el('span', { class: 'pill', 'data-status': status }, group)),
    el(
      'td',
      {},
      rows === 1 ? all : el('details', {}, el('summary', {}, plural(rows, 'row')), all),
      about,
      rows === 1 && refusedLink(verdict, named[0].row),
    ),
  );
}

/** A link to the refused requests of a row that is enforced. */
function refusedLink(verdict, row) {
  if (verdict !== 'enforced') return false;
  const [, template = row] = row.split(' ');
  return el(
    'p',
    {},
    el('a', { href: addressOf('requests', { outcome: 'refused', row: template }) }, 'Look at these requests'),
  );
}

/** Without the verdict that the text begins with: the title has it already. */
function withoutVerdict(text) {
  return inOurTimes(text.replace(/^[^:]*: /, ''));
}

function inOurTimes(text) {
  return text.replace(/\d{4}-\d\d-\d\d \d\d:\d\d UTC/g, (time) =>
    minuteTime(Date.parse(time.replace(' UTC', 'Z'))),
  );
}

const nameOf = (row) => (row === '*' ? 'requests that no row names' : row);

const changes = {
  client: 'Change the client',
  setting: 'Change a setting',
  either: 'Change the client or a setting',
};

function reasonLine(row, found, nowMs) {
  const { rejection, reason, cause, requests, clients, sinceMs, lastSeenMs, days, next } = found;
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
      el('span', { class: 'about' }, `${days.join(', ')} (today)`),
    ),
    el('td', { class: 'secondary' }, clientsOf(clients)),
    el(
      'td',
      {},
      el('b', {}, `${changes[cause]}: `),
      withCode(next),
      el('span', { class: 'about' }, el('a', { href: about }, 'Look at these requests')),
    ),
  );
}

function clientsOf({ count: all, areMore, named }) {
  return el(
    'details',
    {},
    el('summary', {}, `${areMore ? 'more than ' : ''}${plural(all, 'client')}`),
    el(
      'ul',
      { class: 'clients' },
      named.map(({ client, userAgent, requests }) =>
        el(
          'li',
          {},
          el('bdi', {}, el('code', {}, cut(client, 160))),
          ', ',
          el('bdi', {}, userAgent === '' ? 'no User-Agent' : `User-Agent ${cut(userAgent, 160)}`),
          `: ${plural(requests, 'request')}`,
        ),
      ),
    ),
  );
}
