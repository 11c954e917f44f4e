import { assess, titleOf } from './assess.js';
import { byId, cut, el, keep, renew, say } from './dom.js';
import { LineChart } from './line-chart.js';
import { ago, clockTime, count, fullTime, millis, plural, sentence, span, statusWords } from './words.js';

const outcomes = [
  { name: 'passed', label: 'passed', mark: 'passed' },
  { name: 'refused', label: 'refused', mark: 'refused', dash: [6, 3] },
  { name: 'observed', label: 'would be refused', mark: 'observed', dash: [2, 3] },
  { name: 'failed', label: 'failed', mark: 'failed', dash: [10, 3, 2, 3] },
];
const shares = [
  { name: 'whole', label: 'whole request', mark: 'passed' },
  { name: 'shop', label: "the shop's share, where it was asked", mark: 'observed', dash: [6, 3] },
  { name: 'own', label: "shopward's own share", mark: 'failed', dash: [2, 3] },
];
const reasonMarks = ['refused', 'passed', 'observed', 'failed', 'other'];
const reasonDashes = [[], [6, 3], [2, 3], [10, 3, 2, 3], [4, 4]];

/** Mistakes of the list that are shown here; the list's own view shows all. */
const mostProblems = 10;

/** The first screen: what is wrong, since when, and what to do; then the traffic of the moment. */
export function startNow(api) {
  const charts = {
    outcomes: new LineChart(byId('chart-outcomes'), { title: 'Requests', format: count, isWhole: true }),
    latency: new LineChart(byId('chart-latency'), {
      title: 'Latency',
      format: millis,
      choice: latencyChoice(),
    }),
    refusals: new LineChart(byId('chart-refusals'), {
      title: 'Refusals and outages',
      format: count,
      isWhole: true,
    }),
  };
  let range = '5m';
  let percentile = 'p95';
  let series;

  const draw = () => {
    if (series === undefined) return;
    const { stepMs, endMs, sinceMs, latency } = series;
    const times = { stepMs, endMs, sinceMs };
    const step = `in steps of ${span(stepMs)}`;
    const drawn = outcomes.map((one) => ({ ...one, values: series.outcomes[one.name] }));
    charts.outcomes.show({ ...times, about: step, series: drawn });
    charts.latency.show({
      ...times,
      about: step,
      series: shares.map((one) => ({
        ...one,
        values: latency[one.name][percentile],
        more: latency[one.name],
      })),
    });
    charts.refusals.show({ ...times, about: step, series: reasonSeries(series) });
  };
  const load = async () => {
    const asked = range;
    const found = await api.get(`api/series?range=${asked}`);
    // Another one may have been chosen meanwhile, and its answer may be here already.
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
    /** shopward does not answer: what is not known must not look well. */
    lose(text) {
      showSentence('unknown', text, [
        el('p', { class: 'quiet' }, 'Nothing is known of the shop or its clients.'),
      ]);
      renew(byId('concerns'));
    },
    async refresh(state) {
      showAssessment(await withSuspects(api, assess(state)), state);
      showTotals(state);
      showPast(state);
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

/** Where most requests are refused, adds why and from whom: that tells an attack from a broken client. */
async function withSuspects(api, assessment) {
  const concern = [assessment.said, ...assessment.concerns].find((one) => one?.id === 'many-refusals');
  if (concern === undefined) return assessment;
  const { counts } = await api.get(`api/decisions/search?outcome=refused&limit=0&sinceMs=${concern.sinceMs}`);
  const first = (values) =>
    values
      .slice(0, 2)
      .map(([value, times]) => `${cut(value, 60)} (${count(times)})`)
      .join(', ');
  if (counts.reasons.length > 0)
    concern.text += `. Mostly ${first(counts.reasons)}, from ${first(counts.clients)}`;
  return assessment;
}

/** The most frequent rejections, and the rest as one line; observed ones and outages are marked as such. */
function reasonSeries({ reasons }) {
  const remarks = { observed: ' (would be)', outage: ' (outage)' };
  const all = reasons.map(({ kind, rejection, reason, counts }) => ({
    name: `${kind} ${rejection} ${reason}`,
    label: `${rejection}${reason === undefined ? '' : ` ${reason}`}${remarks[kind] ?? ''}`,
    values: counts,
  }));
  const sum = ({ values }) => values.reduce((a, b) => a + b, 0);
  all.sort((a, b) => sum(b) - sum(a));
  const shown = all.slice(0, reasonMarks.length - 1);
  const rest = all.slice(reasonMarks.length - 1);
  if (rest.length > 0) {
    const values = rest[0].values.map((_, i) => rest.reduce((total, one) => total + one.values[i], 0));
    shown.push({ name: 'other', label: `${rest.length} others`, values });
  }
  return shown.map((one, i) => ({ ...one, mark: reasonMarks[i], dash: reasonDashes[i] }));
}

function showAssessment(assessment, { nowMs, total, startedMs }) {
  const { status, said, concerns, over } = assessment;
  const refused = Object.values(total.refusals).reduce((a, b) => a + b, 0);
  const quiet = `${plural(total.requests, 'request')} in ${span(nowMs - startedMs)}, ${count(refused)} of them refused.`;
  showSentence(status, assessment.sentence, [
    ...(said === undefined ? [el('p', { class: 'quiet' }, quiet)] : concernParts(said, nowMs)),
    over && el('p', { class: 'quiet' }, `Over since ${overText(over, nowMs)}`),
  ]);
  renew(
    byId('concerns'),
    concerns.map((concern) => concernItem(concern, nowMs)),
  );
}

/** Shows the one sentence; screen readers announce it only when it changes. */
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
  say(byId('announcement'), text);
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

function concernParts({ text, problems = [], sinceMs, next, link, book }, nowMs) {
  return [
    sinceMs !== undefined &&
      el('p', { class: 'quiet' }, `Since ${fullTime(sinceMs)}, ${ago(sinceMs, nowMs)}`),
    text && el('p', {}, sentence(cut(text, 600))),
    problems.length > 0 && el('ul', { class: 'problems' }, problems.slice(0, mostProblems).map(problemItem)),
    problems.length > mostProblems &&
      el('p', {}, `and ${plural(problems.length - mostProblems, 'more mistake')}`),
    el('p', {}, el('b', {}, 'Next: '), next),
    el(
      'p',
      {},
      el('a', { href: link.href }, link.text),
      el('span', { class: 'quiet' }, ` · run book: ${book}`),
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

function showTotals({ mode, list, total, startedMs, nowMs }) {
  const sum = (counts) => Object.values(counts).reduce((a, b) => a + b, 0);
  const entries = [
    ['Requests', count(total.requests)],
    ['Refused', count(sum(total.refusals))],
    ['Would be refused', count(sum(total.observed))],
    ['Broken by an outage', count(sum(total.outages))],
    [
      list.observing > 0 && mode !== 'observe' ? `Mode, ${plural(list.observing, 'row')} observe` : 'Mode',
      mode,
    ],
    ['Since the start', span(nowMs - startedMs)],
  ];
  keep(
    byId('totals'),
    entries,
    ([label]) => [el('dt', {}, label), el('dd', {})],
    ([, value], div) => say(div.lastElementChild, value),
  );
}

function showPast({ pastIncidents, nowMs }) {
  byId('past').hidden = pastIncidents.length === 0;
  say(byId('past-summary'), `What was not well before (${count(pastIncidents.length)})`);
  renew(
    byId('past-list'),
    pastIncidents.map((incident) =>
      el(
        'li',
        {},
        overText(incident, nowMs),
        el('span', { class: 'quiet' }, ` ${sentence(cut(incident.text))}`),
      ),
    ),
  );
}

/** `05:31:10 UTC (3 min ago): the shop does not answer, for 5 min.` */
function overText(incident, nowMs) {
  const { sinceMs, untilMs } = incident;
  return `${fullTime(untilMs)} (${ago(untilMs, nowMs)}): ${titleOf(incident)}, for ${span(untilMs - sinceMs)} since ${clockTime(sinceMs)}.`;
}
