import { assess, titleOf } from './assess.js';
import { breakable, byId, cut, docLink, el, keep, renew, say, trendLine, withCode } from './dom.js';
import { reasonText } from './explanation.js';
import { firstShown, LineChart } from './line-chart.js';
import { addressOf } from './router.js';
import {
  ago,
  clockTime,
  count,
  fullTime,
  millis,
  percent,
  perSecond,
  plural,
  sentence,
  span,
  statusWords,
} from './words.js';

/** From the lowest area to the highest. */
const outcomes = [
  { name: 'passed', label: 'passed', mark: 'passed' },
  { name: 'observed', label: 'would be refused', mark: 'observed' },
  { name: 'refused', label: 'refused', mark: 'refused' },
  { name: 'failed', label: 'failed', mark: 'failed' },
];
const shares = [
  { name: 'whole', label: 'whole request', mark: 'passed' },
  { name: 'shop', label: "the shop's share, if asked", mark: 'observed', dash: [6, 3] },
  { name: 'own', label: "shopward's own share", mark: 'failed', dash: [2, 3] },
];

/** Maximum number of mistakes of the list that are shown here; the list's own view shows all. */
const mostProblems = 10;

/** The first screen: what is wrong, since when, and what to do; then the traffic of the moment. */
export function startNow(api) {
  const rate = (value) => `${perSecond(value)}/s`;
  const charts = {
    outcomes: new LineChart(byId('chart-outcomes'), { title: 'Requests', format: rate, isStacked: true }),
    latency: new LineChart(byId('chart-latency'), {
      title: 'Latency',
      format: millis,
      choice: latencyChoice(),
    }),
  };
  let range = '5m';
  let percentile = 'p95';
  let series;
  let last;

  const draw = () => {
    if (series === undefined) return;
    const { stepMs, endMs, sinceMs, latency, marks } = series;
    const times = { stepMs, endMs, sinceMs, marks };
    const step = `in steps of ${span(stepMs)}`;
    const perStep = (values) => values.map((value) => (1000 * value) / stepMs);
    const areas = outcomes.map((one) => ({ ...one, values: perStep(series.outcomes[one.name]) }));
    charts.outcomes.show({ ...times, about: `a second, ${step}`, series: areas });
    charts.latency.show({
      ...times,
      about: step,
      series: shares.map((one) => ({
        ...one,
        values: latency[one.name][percentile],
      })),
    });
    const shown = { ...series, ...measure(series, last.nowMs) };
    showTotals(last, shown);
    showRows(shown);
    showClients(shown);
    showMarks(shown);
    void showReasons(api, shown);
  };
  const load = async () => {
    const asked = range;
    const found = await api.get(`api/series?range=${asked}`);
    // Another range may have been chosen meanwhile, and its answer may have come first.
    if (asked !== range) return;
    series = found;
    draw();
  };

  byId('range').addEventListener('change', (event) => {
    range = event.target.value;
    load().catch(() => {});
  });
  byId('chart-latency').addEventListener('change', (event) => {
    percentile = event.target.value;
    draw();
  });
  return {
    show() {},
    /** shopward does not answer: unknown values must not look good. */
    lose(text) {
      announce(text);
      showSentence('unknown', text, [
        el('p', { class: 'muted' }, 'Nothing is known of the shop or its clients.'),
      ]);
      renew(byId('concerns'));
    },
    /** For screen readers, on every view. */
    announce: (state) => announce(assess(state).sentence),
    async refresh(state) {
      showAssessment(assess(state), state);
      last = state;
      await load();
    },
  };
}

function latencyChoice() {
  const options = [
    ['p50', 'p50'],
    ['p95', 'p95'],
    ['p99', 'p99'],
  ];
  return el(
    'select',
    {
      id: 'latency-percentile',
      'aria-label': 'Percentile of latency',
      title: 'p95: 95 of 100 requests are faster',
    },
    options.map(([value, text]) => el('option', { value, selected: value === 'p95' }, text)),
  );
}

/** Sums over the shown range, of which `seconds` were counted. */
function measure({ outcomes: counts, stepMs, endMs, sinceMs, latency }, nowMs) {
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const sums = Object.fromEntries(outcomes.map(({ name }) => [name, sum(counts[name])]));
  const steps = counts.passed.length;
  const beganMs = endMs - steps * stepMs;
  const from = firstShown(steps, Math.floor((sinceMs - beganMs) / stepMs));
  const fromMs = Math.max(beganMs, sinceMs);
  return {
    trend: (values, mark) => trendLine(values.slice(from), mark),
    sums,
    all: sum(Object.values(sums)),
    seconds: Math.max(1, (Math.min(nowMs, endMs) - fromMs) / 1000),
    p95: latency.whole.p95.findLast((value) => value !== null) ?? null,
  };
}

/** Rows of a table, or a row that says that there are none. */
function showTable(id, rows) {
  renew(byId(id), rows.length > 0 ? rows : el('tr', {}, el('td', { class: 'none' }, 'None.')));
}

const cell = (name, ...children) => el('td', { class: name }, children);
const kindWords = { refused: '', observed: 'would be refused', outage: 'outage' };
const kindMarks = { refused: 'refused', observed: 'observed', outage: 'failed' };
const nameOf = ({ rejection, reason }) =>
  reason === undefined || rejection.endsWith(`-${reason}`) ? rejection : `${rejection} (${reason})`;

/** Refusals and outages with their share of all requests, and the cause and cure that docs/reasons.md gives. */
async function showReasons(api, { reasons, all, trend }) {
  const texts = await Promise.all(reasons.map(({ rejection, reason }) => reasonText(api, rejection, reason)));
  const rows = reasons.flatMap(({ kind, requests, counts, ...named }, i) => [
    el(
      'tr',
      { class: texts[i] && 'explained' },
      el(
        'th',
        { scope: 'row' },
        el('a', { href: addressOf('requests', { reason: named.reason ?? named.rejection }) }, nameOf(named)),
        kindWords[kind] !== '' && [' ', el('span', { class: 'tag' }, kindWords[kind])],
      ),
      cell('number', count(requests)),
      cell('number', percent(requests, all)),
      el('td', { class: 'trend secondary', rowspan: texts[i] && 2 }, trend(counts, kindMarks[kind])),
    ),
    texts[i] &&
      el(
        'tr',
        {},
        el(
          'td',
          { class: 'why', colspan: 3 },
          withCode(aboutOf(texts[i])),
          ' ',
          docLink(`docs/reasons.md#${texts[i].name}`, 'More', `More about ${texts[i].name}`),
        ),
      ),
  ]);
  showTable('now-reasons', rows);
}

/** Cause and cure. */
const aboutOf = ({ cause, cure = '' }) => `${cause} ${cure}`;

function showRows({ rows, seconds, trend }) {
  const row = ({ method, route, requests, refused, observed, failed, p95, counts }) =>
    el(
      'tr',
      {},
      el(
        'th',
        { scope: 'row' },
        el(
          'a',
          { href: addressOf('requests', { row: route }) },
          route === '*' ? `${method}, no row` : [`${method} `, breakable(cut(route, 120))],
        ),
      ),
      cell('number', perSecond(requests / seconds)),
      cell('number', percent(refused + observed, requests)),
      cell('number secondary', percent(failed, requests)),
      cell('number', p95 === null ? '' : millis(p95)),
      cell('trend secondary', trend(counts, 'passed')),
    );
  showTable('now-rows', rows.map(row));
}

function showClients({ clients, trend }) {
  const row = ({ client, requests, last, counts }) =>
    el(
      'tr',
      {},
      el('th', { scope: 'row' }, el('a', { href: addressOf('requests', { client }) }, cut(client, 60))),
      cell('number', count(requests)),
      cell('last', nameOf(last)),
      cell('trend secondary', trend(counts, 'refused')),
    );
  showTable('now-clients', clients.map(row));
}

/** Maximum number of marks on the charts that the table explains, the newest first. */
const mostMarks = 8;
const markWords = { start: 'start', edit: 'edit', fault: 'fault', over: 'over' };

function showMarks({ marks, stepMs, endMs, outcomes: counts }) {
  const fromMs = endMs - counts.passed.length * stepMs;
  const shown = marks.filter(({ atMs }) => atMs >= fromMs).toSorted((a, b) => b.atMs - a.atMs);
  const row = ({ atMs, kind, text, incident }) =>
    el(
      'tr',
      {},
      el('th', { scope: 'row' }, el('time', { title: fullTime(atMs) }, clockTime(atMs))),
      el(
        'td',
        {},
        el('span', { class: 'mark', 'data-kind': kind }, markWords[kind]),
        ` ${cut(incident ? titleOf(incident) : text)}`,
      ),
    );
  showTable('now-marks', shown.slice(0, mostMarks).map(row));
}

function showAssessment(assessment, { nowMs, total, startedMs }) {
  const { status, said, concerns, over } = assessment;
  const refused = Object.values(total.refusals).reduce((a, b) => a + b, 0);
  const summary = `${plural(total.requests, 'request')} in ${span(nowMs - startedMs)}, ${count(refused)} of them refused.`;
  showSentence(status, assessment.sentence, [
    ...(said === undefined ? [el('p', { class: 'muted' }, summary)] : concernParts(said, nowMs)),
    over && el('p', { class: 'muted' }, `Over since ${overText(over, nowMs)}`),
  ]);
  renew(
    byId('concerns'),
    concerns.map((concern) => concernItem(concern, nowMs)),
  );
}

/** Shows the sentence about the whole state. */
function showSentence(status, text, more) {
  const card = byId('sentence');
  card.dataset.status = status;
  renew(
    card,
    el(
      'p',
      { class: 'say' },
      el('span', { class: 'pill', 'data-status': status }, statusWords[status]),
      ' ',
      text,
    ),
    more,
  );
}

/** Screen readers speak this text when it changes; a share that rises by a percent is no change. */
function announce(text) {
  const region = byId('announcement');
  const withoutShares = (said) =>
    said
      .split(' ')
      .filter((_, i, words) => words[i + 1] !== '%')
      .join(' ');
  if (withoutShares(region.textContent) !== withoutShares(text)) say(region, text);
}

/** A concern as a card: what, since when, what to do, where to look. */
function concernItem(concern, nowMs) {
  return el(
    'li',
    { class: 'card concern', 'data-status': concern.status },
    el('h3', {}, concern.title),
    concernParts(concern, nowMs),
  );
}

function concernParts({ text, problems = [], sinceMs, next, link, runbook }, nowMs) {
  return [
    sinceMs !== undefined &&
      el('p', { class: 'muted' }, `Since ${fullTime(sinceMs)}, ${ago(sinceMs, nowMs)}`),
    text && el('p', {}, sentence(cut(text, 600))),
    problems.length > 0 && el('ul', { class: 'problems' }, problems.slice(0, mostProblems).map(problemItem)),
    problems.length > mostProblems &&
      el('p', {}, `and ${plural(problems.length - mostProblems, 'more mistake')}`),
    el('p', {}, el('b', {}, 'Next: '), next),
    el(
      'p',
      {},
      el('a', { href: link.href }, link.text),
      el('span', { class: 'muted' }, ' · ', docLink(runbook, 'Runbook')),
    ),
  ];
}

export function problemItem({ file, line, column, severity, text }) {
  return el(
    'li',
    { 'data-severity': severity },
    el('code', {}, `${file}:${line}:${column}`),
    ` ${severity}: ${cut(text)}`,
  );
}

/** Rates over the shown range, and the number of requests since the start. */
function showTotals({ total, startedMs, nowMs }, { sums, all, seconds, p95 }) {
  const entries = [
    ['a second', perSecond(all / seconds)],
    ['refused', percent(sums.refused, all)],
    ['would be refused', percent(sums.observed, all)],
    ['failed', percent(sums.failed, all)],
    ['p95, latest', p95 === null ? 'none' : millis(p95)],
    [`requests in ${span(nowMs - startedMs)}`, count(total.requests)],
  ];
  keep(
    byId('totals'),
    entries,
    () => [el('dt', {}), el('dd', {})],
    ([label, value], div) => {
      say(div.firstElementChild, label);
      say(div.lastElementChild, value);
    },
  );
}

/** `TIME (3 min ago): The shop does not answer, for 5 min since 05:26:10.` */
function overText(incident, nowMs) {
  const { sinceMs, untilMs } = incident;
  return `${fullTime(untilMs)} (${ago(untilMs, nowMs)}): ${titleOf(incident)}, for ${span(untilMs - sinceMs)} since ${clockTime(sinceMs)}.`;
}
