import { byId, el, say } from './dom.js';
import { clockTime, count, fullTime, millis, plural } from './words.js';

/** Decisions that the page keeps; the server sends no more than some dozens a second. */
const maxKept = 400;

/** The live list: newest first, with a filter and a pause. */
export function startDecisions(api) {
  const rows = byId('decision-rows');
  const none = byId('decision-none');
  const stateLine = byId('decision-state');
  const search = byId('decision-search');
  const kind = byId('decision-kind');
  const pause = byId('decision-pause');

  /** Newest first: `{ decision, text, element }`. */
  const kept = [];
  let waiting = [];
  let isPaused = false;
  let skipped = 0;
  let connection = 'connecting';
  let lastSeq = 0;

  const tellState = () => {
    const parts = [isPaused ? `paused, ${plural(waiting.length, 'new decision')}` : connection];
    if (skipped > 0) parts.push(`${count(skipped)} more came too fast to be shown`);
    say(stateLine, parts.join('; '));
  };

  const isWanted = (one) =>
    isKind(one.decision, kind.value) && one.text.includes(search.value.trim().toLowerCase());

  const refresh = () => {
    let visible = 0;
    for (const one of kept) {
      one.element.hidden = !isWanted(one);
      if (!one.element.hidden) visible++;
    }
    none.hidden = visible > 0;
    say(none, kept.length === 0 ? 'No requests yet.' : 'No decision fits the filter.');
  };

  const add = (decisions) => {
    if (decisions.length === 0) return;
    const fresh = decisions.toReversed().map((decision) => ({
      decision,
      text: searchText(decision),
      element: decisionItem(decision),
    }));
    kept.unshift(...fresh);
    rows.prepend(...fresh.map(({ element }) => element));
    for (const { element } of kept.splice(maxKept)) element.remove();
    refresh();
  };

  let pending = [];
  const onEvent = (name, data) => {
    if (name === 'skipped') skipped += data;
    if (name === 'decision') {
      lastSeq = data.seq;
      pending.push(data);
      // One drawing for all that came at once.
      if (pending.length === 1) requestAnimationFrame(takePending);
    }
    tellState();
  };
  const takePending = () => {
    const decisions = pending;
    pending = [];
    if (!isPaused) return add(decisions);
    waiting = [...waiting, ...decisions].slice(-maxKept);
    tellState();
  };

  pause.addEventListener('click', () => {
    isPaused = !isPaused;
    pause.setAttribute('aria-pressed', String(isPaused));
    say(pause, isPaused ? 'Go on' : 'Pause');
    if (!isPaused) {
      add(waiting);
      waiting = [];
    }
    tellState();
  });
  search.addEventListener('input', refresh);
  kind.addEventListener('change', refresh);

  const follow = async () => {
    for (let tries = 0; ; tries++) {
      try {
        connection = 'live';
        tellState();
        await api.follow(`api/decisions?after=${lastSeq}`, onEvent);
        tries = 0;
      } catch {
        // Said below; the next try may do.
      }
      connection = 'connection lost, trying again';
      tellState();
      await new Promise((resolve) => setTimeout(resolve, Math.min(1_000 * (tries + 1), 5_000)));
    }
  };
  follow();
}

function isKind({ decision, observed, status }, kind) {
  if (kind === 'all') return true;
  if (kind === 'observed') return observed !== undefined;
  if (kind === 'failed') return status >= 500;
  return decision === kind;
}

function searchText({ method, path, route, status, rejection, observed, reason, clientAddress, requestId }) {
  const parts = [
    `${method} ${path}`,
    `${method} ${route}`,
    status,
    rejection,
    observed,
    reason,
    clientAddress,
    requestId,
  ];
  return parts.join(' ').toLowerCase();
}

function decisionItem(decision) {
  const { atMs, method, path, status, route, durationMs, upstreamMs, clientAddress, requestId } = decision;
  const took =
    upstreamMs === undefined ? millis(durationMs) : `${millis(durationMs)}, shop ${millis(upstreamMs)}`;
  const more = [route === '*' ? 'no row' : `row ${route}`, took, clientAddress, requestId];
  return el(
    'li',
    { class: 'decision', 'data-outcome': outcomeOf(decision) },
    el(
      'div',
      { class: 'line' },
      el('time', { datetime: new Date(atMs).toISOString(), title: fullTime(atMs) }, clockTime(atMs)),
      el('span', { class: 'status' }, status === 0 ? 'left' : status),
      el('span', { class: 'request' }, el('b', {}, method), ' ', path || '(not readable)'),
    ),
    el('div', { class: 'why' }, whyText(decision)),
    el('div', { class: 'more quiet' }, more.filter(Boolean).join(' · ')),
  );
}

function whyText({ decision, rejection, observed, reason, fault }) {
  const because = reason === undefined ? '' : ` (${reason})`;
  const broke = fault === undefined ? '' : `, fault ${fault}`;
  if (rejection !== undefined) return `${decision}: ${rejection}${because}${broke}`;
  if (observed !== undefined) return `observed, ${decision}: would have been ${observed}${because}${broke}`;
  return `${decision}${broke}`;
}

function outcomeOf({ decision, observed, status }) {
  if (status >= 500) return 'failed';
  if (decision === 'refused') return 'refused';
  return observed === undefined ? 'passed' : 'observed';
}
