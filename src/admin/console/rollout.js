import { byId, el, showOnce } from './dom.js';
import { addressOf } from './router.js';
import { ago, count, fullTime, plural, span } from './words.js';

/** What to do about a would-be refusal, so that enforcing it harms nobody. */
const nextSteps = {
  'access-token-missing':
    'Clients call this without signing in. If they may, take the row off the list; if they should not, give them a token before you enforce.',
  'access-token-invalid':
    'Their tokens are expired or of another issuer. Look at the word in brackets of a decision: one client to mend, or a setting of auth.',
  'insufficient-scope':
    'Their tokens lack a scope of the row. Give it to the client, or take it off the row.',
  'if-match-missing':
    'These clients change the resource without its tag. They have to send If-Match before you enforce.',
  'if-match-invalid':
    'These changes would have overwritten a newer state: refusing them is what this is for.',
  'refresh-token-invalid':
    'A used or revoked token came again. A client that keeps the old one has to be mended first.',
  'token-request-not-plain': 'Send token requests as plain JSON or form before you enforce.',
};
const otherStep = 'Look at the requests, and mend the client or the row.';

/** Is it safe to enforce? Who would be refused, where, since when, and what to do about each. */
export function startRollOut(api) {
  return {
    show() {},
    async refresh(state) {
      const entries = await readEntries(api);
      const { status, sentence, more } = judge(state, entries);
      const card = byId('roll-out-sentence');
      card.dataset.status = status;
      showOnce(card, sentence + more, () => [
        el('p', { class: 'say' }, sentence),
        el('p', { class: 'quiet' }, more),
      ]);
      showOnce(byId('roll-out-list'), JSON.stringify([entries, Math.floor(state.nowMs / 10_000)]), () =>
        entries.map((entry) => entryItem(entry, state)),
      );
    },
  };
}

/**
 * One entry for each row and reason, those with most requests first: `{ method, template, reason, requests, clients,
 * sinceMs, lastSeenMs }`. What the counters of this process do not know is undefined.
 */
async function readEntries(api) {
  const [{ rows }, kept] = await Promise.all([
    api.get('api/rows'),
    api.get('api/decisions/search?outcome=observed&limit=200'),
  ]);
  const counted = rows.flatMap(({ method, template, observed, lastSeenMs }) =>
    Object.entries(observed).map(([reason, requests]) => {
      const seen = kept.decisions.filter((one) => one.route === template && one.observed === reason);
      return {
        method,
        template,
        reason,
        requests,
        clients: new Set(seen.map(({ clientAddress }) => clientAddress)).size || undefined,
        sinceMs: seen.at(-1)?.atMs,
        lastSeenMs: seen[0]?.atMs ?? lastSeenMs,
      };
    }),
  );
  return counted.sort((a, b) => b.requests - a.requests);
}

function judge({ mode, list, startedMs, nowMs, total }, entries) {
  const isWhole = mode === 'observe';
  const upFor = span(nowMs - startedMs);
  if (!isWhole && list.observing === 0) {
    return {
      status: 'ok',
      sentence: `Everything is enforced: ${plural(list.rows, 'row')}.`,
      more: 'To try out a row first, set observe: true on it; to try out everything, mode: observe.',
    };
  }
  const what = isWhole
    ? 'Nothing is enforced'
    : `${plural(list.observing, 'row')} of ${count(list.rows)} not enforced`;
  const wouldBe = Object.values(total.observed).reduce((a, b) => a + b, 0);
  if (wouldBe === 0) {
    const enough = nowMs - startedMs > 7 * 86_400_000;
    return {
      status: enough ? 'ok' : 'notice',
      sentence: `${what}. 0 would-be refusals in ${upFor}.`,
      more: enough
        ? 'Nobody would have been refused for seven days or more: it is safe to enforce.'
        : 'Nobody would have been refused so far. Wait until every client has been seen, a week is usual.',
    };
  }
  return {
    status: 'limping',
    sentence: `${what}. ${plural(wouldBe, 'request')} would have been refused in ${upFor}.`,
    more: `${plural(entries.length, 'pair')} of row and reason, below. Each says what to do before it is enforced.`,
  };
}

function entryItem({ method, template, reason, requests, clients, sinceMs, lastSeenMs }, { nowMs }) {
  const facts = [
    plural(requests, 'request'),
    clients !== undefined && `of ${plural(clients, 'client')} in the decisions that are kept`,
    sinceMs !== undefined && `first kept ${fullTime(sinceMs)}`,
    lastSeenMs !== null && `last ${ago(lastSeenMs, nowMs)}`,
  ].filter(Boolean);
  return el(
    'li',
    { class: 'card concern', 'data-status': 'notice' },
    el('h3', {}, `${method} ${template}: ${reason}`),
    el('p', {}, facts.join(', ')),
    el('p', {}, el('b', {}, 'Next: '), nextSteps[reason] ?? otherStep),
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
