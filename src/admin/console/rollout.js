import { byId, cut, el, renew, withCode } from './dom.js';
import { addressOf } from './router.js';
import { ago, count, fullTime, minuteTime, plural, sentence as sentenceOf } from './words.js';

/** For each verdict of the report: the status of the card, the title of a group, and the sentence. */
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

/** Rows that have a card; the rest is counted. */
const mostCards = 50;

/** Shows `GET /api/rollout`: whether it is safe to enforce, who would be refused, where, since when, and what to do. */
export function startRollOut(api) {
  return {
    show() {},
    async refresh() {
      const report = await api.getPaced(`api/rollout?verdict=refuses&limit=${mostCards}`).catch((fault) => {
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

function answerOf({ verdict, text, wholeSinceMs, why, problems, rows }) {
  const { sentence } = verdicts[verdict];
  // Counts with gaps are no proof that it is safe.
  const status =
    problems.length > 0 && verdicts[verdict].status === 'ok' ? 'notice' : verdicts[verdict].status;
  const more = [
    verdict !== 'enforced' && sentenceOf(text),
    wholeSinceMs !== null && `Counted without a gap since ${fullTime(wholeSinceMs)} (${why}).`,
    ...problems.map((problem) => sentenceOf(inOurTimes(problem))),
    verdicts[verdict].next,
    rows.some(namesDigests) &&
      'Clients of twelve digits are digests that tell them apart; rollout.clients: named shows who they are.',
  ];
  return { status, sentence, more: more.filter(Boolean).join(' ') };
}

function namesDigests({ reasons }) {
  return reasons.some(({ clients }) => clients.named.some(({ client }) => /^[0-9a-f]{12}$/.test(client)));
}

/** A card for each row and reason that would refuse somebody, then one for each group of other rows. */
function itemsOf({ rows, found, groups, nowMs }) {
  const cards = rows.flatMap(({ row, reasons }) =>
    reasons.filter(({ kind }) => kind === 'observed').map((reason) => reasonItem(row, reason, nowMs)),
  );
  const left = found - rows.length;
  return [
    ...cards,
    left > 0 && card(`${plural(left, 'more row')} would refuse somebody: shopward rollout has all`, 'notice'),
    ...groups.map(groupItem),
  ].filter(Boolean);
}

/** `text` is that of each of these rows, empty where they differ. */
function groupItem({ verdict, text, rows, named }) {
  const { group, status } = verdicts[verdict];
  const title = `${group}: ${rows === 1 ? nameOf(named[0].row) : plural(rows, 'row')}`;
  const said = text || (rows === 1 ? named[0].text : '');
  const about = said !== '' && el('p', {}, sentenceOf(withoutVerdict(said)));
  if (rows === 1) return card(title, status, about, refusedLink(verdict, named[0].row));
  const left = rows - named.length;
  return card(
    title,
    status,
    about,
    el(
      'details',
      {},
      el('summary', {}, 'These rows'),
      el(
        'ul',
        { class: 'rows' },
        named.map(({ row, text: own }) =>
          el('li', {}, el('code', {}, cut(nameOf(row))), text === '' && ` ${withoutVerdict(own)}`),
        ),
        left > 0 && el('li', {}, `and ${count(left)} more`),
      ),
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

function reasonItem(
  row,
  { rejection, reason, cause, requests, clients, sinceMs, lastSeenMs, days, next, more },
  nowMs,
) {
  const facts = [
    plural(requests, 'request'),
    `of ${clients.areMore ? 'more than ' : ''}${plural(clients.count, 'client')}`,
    `since ${fullTime(sinceMs)}`,
    `last seen ${ago(lastSeenMs, nowMs)}`,
  ];
  const named = clients.named.map(({ client, userAgent, requests: of }) =>
    el(
      'li',
      {},
      el('bdi', {}, el('code', {}, cut(client, 160))),
      ', ',
      el('bdi', {}, userAgent === '' ? 'no User-Agent' : `User-Agent ${cut(userAgent, 160)}`),
      `: ${plural(of, 'request')}`,
    ),
  );
  const [, template = row] = row.split(' ');
  return card(
    `${nameOf(row)}: ${rejection}${reason === undefined ? '' : ` (${reason})`}`,
    'notice',
    el('p', {}, facts.join(', ')),
    el('p', {}, `Requests a day, the last seven days: ${days.join(', ')} (today)`),
    el('p', {}, clients.areMore ? 'The clients with most of them:' : 'The clients:'),
    el('ul', { class: 'clients' }, named),
    el('p', {}, el('b', {}, `${changes[cause]}: `), withCode(next)),
    el(
      'p',
      {},
      el(
        'a',
        { href: addressOf('requests', { outcome: 'observed', row: template, reason: reason ?? rejection }) },
        'Look at these requests',
      ),
      el('span', { class: 'quiet' }, ` · in the docs: ${more}`),
    ),
  );
}

const changes = {
  client: 'Change the client',
  setting: 'Change a setting',
  either: 'Change the client or a setting',
};

function card(title, status, ...content) {
  return el('li', { class: 'card concern', 'data-status': status }, el('h3', {}, title), content);
}
