import { byId, cut, el, renew, withCode } from './dom.js';
import { addressOf } from './router.js';
import { ago, count, fullTime, plural, sentence as sentenceOf } from './words.js';

/** Status of the card, and what is said first, for each verdict of the report. */
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
    sentence: 'Nobody would be refused, but some rows nobody asked for.',
  },
  safe: {
    status: 'ok',
    group: 'Safe to enforce',
    sentence: 'Safe to enforce: 0 would-be refusals for seven days.',
    next: 'Set mode: enforce, or take observe off these rows one at a time: docs/rollout.md, "Enforce, row by row".',
  },
  enforced: { status: 'ok', group: 'Enforced', sentence: 'Everything is enforced.' },
};

/** Is it safe to enforce? Who would be refused, where, since when, and what to do about each: `GET /api/rollout` in words. */
export function startRollOut(api) {
  return {
    show() {},
    async refresh() {
      const report = await api.getPaced('api/rollout').catch((fault) => {
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

function answerOf({ verdict, text, wholeSinceMs, why, problems }) {
  const { status, sentence } = verdicts[verdict];
  const more = [
    verdict !== 'enforced' && sentenceOf(text),
    wholeSinceMs !== null && `Counted without a gap since ${fullTime(wholeSinceMs)} (${why}).`,
    ...problems.map(sentenceOf),
    verdicts[verdict].next,
  ];
  return { status, sentence, more: more.filter(Boolean).join(' ') };
}

/** Of a list of thousands; the rest is counted. */
const mostCards = 50;
const mostRows = 200;

/** A card for each reason for which somebody would be refused; what is the same of many rows is said once. */
function itemsOf({ rows, nowMs }) {
  const isRefusing = ({ verdict, reasons }) =>
    verdict === 'refuses' && reasons.some(({ kind }) => kind === 'observed');
  const cards = rows
    .filter(isRefusing)
    .flatMap(({ row, reasons }) =>
      reasons.filter(({ kind }) => kind === 'observed').map((reason) => reasonItem(row, reason, nowMs)),
    );
  const left = cards.length - mostCards;
  const others = Map.groupBy(
    rows.filter((row) => !isRefusing(row)),
    ({ verdict, text }) => (verdict === 'safe' ? verdict : `${verdict} ${text}`),
  );
  return [
    ...cards.slice(0, mostCards),
    left > 0 && card(`${plural(left, 'more pair')} of row and reason`, 'notice'),
    ...[...others.values()].map(groupItem),
  ];
}

function groupItem(rows) {
  const [{ verdict, text }] = rows;
  const title = `${verdicts[verdict].group}: ${rows.length === 1 ? nameOf(rows[0].row) : plural(rows.length, 'row')}`;
  // The title says the verdict.
  const about = el('p', {}, sentenceOf(text.replace(/^[^:]*: /, '')));
  if (rows.length === 1) return card(title, verdicts[verdict].status, about);
  const left = rows.length - mostRows;
  return card(
    title,
    verdicts[verdict].status,
    verdict !== 'safe' && about,
    el(
      'details',
      {},
      el('summary', {}, 'These rows'),
      el(
        'ul',
        { class: 'rows' },
        rows
          .slice(0, mostRows)
          .map(({ row, text }) =>
            el(
              'li',
              {},
              el('code', {}, cut(nameOf(row))),
              verdict === 'safe' && ` ${text.replace(/^[^:]*: /, '')}`,
            ),
          ),
        left > 0 && el('li', {}, `and ${count(left)} more`),
      ),
    ),
  );
}

const nameOf = (row) => (row === '*' ? 'requests that no row names' : row);

function reasonItem(row, { reason, requests, clients, sinceMs, lastSeenMs, days, next, more }, nowMs) {
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
    `${nameOf(row)}: ${reason}`,
    'notice',
    el('p', {}, facts.join(', ')),
    el('p', {}, `Requests a day, the last seven days: ${days.join(', ')} (today)`),
    el('p', {}, clients.areMore ? 'The clients with most of them:' : 'The clients:'),
    el('ul', { class: 'clients' }, named),
    clients.named.some(({ client }) => /^[0-9a-f]{12}$/.test(client)) &&
      el(
        'p',
        { class: 'quiet' },
        'Twelve digits are a digest that tells clients apart; rollout.clients: named shows who they are.',
      ),
    el('p', {}, el('b', {}, 'Next: '), withCode(next)),
    el(
      'p',
      {},
      el(
        'a',
        { href: addressOf('requests', { outcome: 'observed', row: template, reason }) },
        'Look at these requests',
      ),
      el('span', { class: 'quiet' }, ` · run book: ${more}`),
    ),
  );
}

function card(title, status, ...content) {
  return el('li', { class: 'card concern', 'data-status': status }, el('h3', {}, title), content);
}
