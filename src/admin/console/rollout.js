import { byId, cut, el, showOnce } from './dom.js';
import { addressOf } from './router.js';
import { ago, fullTime, plural } from './words.js';

/** Status of the card, and what is said first, for each verdict of the report. */
const verdicts = {
  refuses: { status: 'degraded', sentence: 'Not safe to enforce: somebody would be refused.' },
  'not-known': { status: 'notice', sentence: 'Not known yet whether it is safe to enforce.' },
  'not-asked': { status: 'notice', sentence: 'Nobody would be refused, but some rows nobody asked for.' },
  safe: { status: 'ok', sentence: 'Safe to enforce: 0 would-be refusals for seven days.' },
  enforced: { status: 'ok', sentence: 'Everything is enforced.' },
};

/** Is it safe to enforce? Who would be refused, where, since when, and what to do about each: `GET /api/rollout` in words. */
export function startRollOut(api) {
  return {
    show() {},
    async refresh() {
      const report = await api.get('api/rollout').catch((fault) => {
        if (fault.status !== 404) throw fault;
        return undefined;
      });
      const { status, sentence, more } = report === undefined ? switchedOff : sentenceOf(report);
      const card = byId('roll-out-sentence');
      card.dataset.status = status;
      showOnce(card, sentence + more, () => [
        el('p', { class: 'say' }, sentence),
        el('p', { class: 'quiet' }, more),
      ]);
      const rows = report?.rows ?? [];
      const minute = Math.floor((report?.nowMs ?? 0) / 10_000);
      showOnce(byId('roll-out-list'), JSON.stringify([rows, minute]), () =>
        rows.flatMap((row) => itemsOf(row, report.nowMs)),
      );
    },
  };
}

const switchedOff = {
  status: 'notice',
  sentence: 'Nothing is counted: rollout is false.',
  more: 'Take that line out of the configuration to see who would be refused.',
};

function sentenceOf({ verdict, text, wholeSinceMs, why, problems }) {
  const { status, sentence } = verdicts[verdict];
  const whole =
    wholeSinceMs === null ? '' : ` Counted without a gap since ${fullTime(wholeSinceMs)} (${why}).`;
  const troubles = problems.map((problem) => ` ${problem}.`).join('');
  return { status, sentence, more: `${text[0].toUpperCase()}${text.slice(1)}.${whole}${troubles}` };
}

/** A card for each reason for which somebody would be refused; one for a row of which there is only its verdict. */
function itemsOf({ row, verdict, text, reasons }, nowMs) {
  const observed = reasons.filter(({ kind }) => kind === 'observed');
  if (verdict !== 'refuses' || observed.length === 0) {
    return [card(row, verdicts[verdict].status, el('p', {}, text))];
  }
  return observed.map((reason) => reasonItem(row, reason, nowMs));
}

function reasonItem(row, { reason, requests, clients, sinceMs, lastSeenMs, days, next, more }, nowMs) {
  const facts = [
    plural(requests, 'request'),
    `of ${clients.areMore ? 'more than ' : ''}${plural(clients.count, 'client')}`,
    `since ${fullTime(sinceMs)}`,
    `last ${ago(lastSeenMs, nowMs)}`,
  ];
  const named = clients.named.map(({ client, userAgent, requests: of }) =>
    el(
      'li',
      {},
      `${cut(userAgent === '' ? 'no User-Agent' : userAgent)}, ${client}: ${plural(of, 'request')}`,
    ),
  );
  const [, template = row] = row.split(' ');
  return card(
    `${row}: ${reason}`,
    'notice',
    el('p', {}, facts.join(', ')),
    el('p', {}, `Requests a day, the last seven days: ${days.join(', ')} (today)`),
    el('ul', {}, ...named),
    el('p', {}, el('b', {}, 'Next: '), `${next} (${more})`),
    el(
      'p',
      {},
      el(
        'a',
        { href: addressOf('requests', { outcome: 'observed', row: template, reason }) },
        'Look at these requests',
      ),
    ),
  );
}

function card(title, status, ...content) {
  return el('li', { class: 'card concern', 'data-status': status }, el('h3', {}, title), ...content);
}
