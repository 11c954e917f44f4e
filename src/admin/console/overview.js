import { drawBars } from './chart.js';
import { byId, el, say, show } from './dom.js';
import { ago, count, fullTime, plural, span } from './words.js';

const outcomes = ['passed', 'refused', 'observed', 'failed'];

/** Everything of the page that `/api/state` alone decides. */
export function showState(state) {
  say(byId('version'), state.version);
  showHealth(state);
  showObserve(state);
  showProblems(state);
  showTotals(state);
  showChart(state.timeline);
  showTiles(state);
}

/** The answers do not come any more: what is shown is old. */
export function showSilence(text) {
  const health = byId('health');
  health.dataset.status = 'down';
  say(health, text);
}

function showHealth({ ready, reasons }) {
  const health = byId('health');
  health.dataset.status = ready ? (reasons.length > 0 ? 'limping' : 'ok') : 'down';
  const limps = reasons.length > 0 ? `, ${plural(reasons.length, 'remark')}` : '';
  say(health, ready ? `ready${limps}` : 'not ready');
}

function showObserve({ mode, list, total }) {
  const banner = byId('observe');
  const isWhole = mode === 'observe';
  banner.hidden = !isWhole && list.observing === 0;
  const seen = Object.values(total.observed).reduce((sum, times) => sum + times, 0);
  const sofar = `${plural(seen, 'request')} that would have been refused went on to the shop so far.`;
  const title = isWhole
    ? 'Observe mode: nothing is enforced'
    : `${plural(list.observing, 'row')} ${list.observing === 1 ? 'is' : 'are'} in observe mode`;
  const text = isWhole
    ? `Refusals are only logged and counted. ${sofar} Set mode: enforce to protect the shop.`
    : `Refusals of these rows are only logged and counted. ${sofar}`;
  showOnce(banner, [title, text].join('\n'), () => [el('strong', {}, title), el('p', {}, text)]);
}

function showProblems({ problems: all, reasons }) {
  const problems = all.toSorted((a, b) => a.severity.localeCompare(b.severity));
  const banner = byId('problems');
  // What a problem says with its place need not be said again without.
  const others = reasons.filter((reason) => !problems.some(({ text }) => reason.includes(text)));
  banner.hidden = problems.length === 0 && others.length === 0;
  showOnce(banner, JSON.stringify([problems, others]), () => [
    problems.length > 0 && [
      el('strong', {}, 'The last edit is not in force; the last good version is'),
      el('ul', {}, problems.map(problemItem)),
    ],
    others.length > 0 &&
      el(
        'ul',
        {},
        others.map((reason) => el('li', {}, reason)),
      ),
  ]);
}

export function problemItem({ file, line, column, severity, text }) {
  return el(
    'li',
    { 'data-severity': severity },
    el('code', {}, `${file}:${line}:${column}`),
    ` ${severity}: ${text}`,
  );
}

function showTotals({ total, open, list, startedMs, nowMs }) {
  const sum = (counts) => Object.values(counts).reduce((a, b) => a + b, 0);
  const entries = [
    ['Requests', count(total.requests)],
    ['Refused', count(sum(total.refusals))],
    ['Observed only', count(sum(total.observed))],
    ['On open routes', count(open.requests)],
    ['Rows in force', count(list.rows)],
    ['Up for', span(nowMs - startedMs)],
  ];
  keep(
    byId('totals'),
    entries,
    ([label]) => [el('dt', {}, label), el('dd', {})],
    ([, value], div) => say(div.lastElementChild, value),
  );
}

function showChart(timeline) {
  const series = outcomes.map((name) => ({ name, values: timeline[name] }));
  show(byId('chart'), drawBars(series));
  keep(
    byId('legend'),
    series,
    ({ name }) => [el('span', { class: `swatch ${name}`, 'aria-hidden': 'true' }), el('span', {})],
    ({ name, values }, item) =>
      say(item.lastElementChild, `${name} ${count(values.reduce((a, b) => a + b, 0))}`),
    'li',
  );
}

const statusWords = { ok: 'ok', limping: 'limping', down: 'down', off: 'off' };

function showTiles({ parts, nowMs }) {
  const tiles = byId('tiles');
  const text = (part) =>
    JSON.stringify([part.status, part.text, part.facts.map((fact) => factText(fact, nowMs))]);
  showOnce(tiles, parts.map(text).join(), () => parts.map((part) => tile(part, nowMs)));
}

function tile({ title, status, text, facts }, nowMs) {
  return el(
    'article',
    { class: 'card tile', 'data-status': status },
    el(
      'h3',
      {},
      title,
      ' ',
      el('span', { class: 'pill', 'data-status': status }, statusWords[status] ?? status),
    ),
    el('p', {}, text),
    el(
      'dl',
      { class: 'facts' },
      facts
        .filter(({ value }) => value !== null)
        .map((fact) =>
          el(
            'div',
            {},
            el('dt', {}, fact.label),
            el(
              'dd',
              { title: fact.unit === 'time' ? fullTime(fact.value) : undefined },
              factText(fact, nowMs),
            ),
          ),
        ),
    ),
  );
}

function factText({ value, unit }, nowMs) {
  if (unit === 'time') return value === null ? '' : ago(value, nowMs);
  return typeof value === 'number' ? count(value) : String(value ?? '');
}

const shown = new WeakMap();

/** Builds anew only what differs, so that a selection or a screen reader is not thrown out every other second. */
function showOnce(element, fingerprint, build) {
  if (shown.get(element) === fingerprint) return;
  shown.set(element, fingerprint);
  show(element, build());
}

/** One child for each entry: made once, then only changed. */
function keep(element, entries, build, change, name = 'div') {
  if (element.childElementCount !== entries.length) {
    show(
      element,
      entries.map((entry) => el(name, {}, build(entry))),
    );
  }
  for (const [i, entry] of entries.entries()) change(entry, element.children[i]);
}
