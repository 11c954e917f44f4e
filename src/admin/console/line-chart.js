import { el, keep, say, show } from './dom.js';
import uPlot from './uPlot.esm.js';
import { clockTime, shortTime } from './words.js';

/** Least number of steps that are shown, even just after the start. */
const leastSteps = 12;

/**
 * Lines or stacked areas over time on a canvas, and below them the values of one step as text: the step under the pointer or the
 * keyboard's cursor (arrows, Home, End; Escape removes it), else the newest complete step. The style sheet sets the height, so that
 * the page does not move when values arrive.
 */
export class LineChart {
  #format;
  #isStacked;
  #plot;
  #area;
  #about;
  #moment;
  #legend;
  #data;
  #index = null;
  #shape = '';

  /** `format(value)` returns the text of a value; `isStacked`: stacked areas; `choice`: a control beside the title. */
  constructor(figure, { title, format, choice, isStacked = false }) {
    this.#isStacked = isStacked;
    this.#format = format;
    this.#about = el('span', { class: 'muted' });
    this.#area = el('div', {
      class: 'plot',
      tabindex: 0,
      role: 'slider',
      'aria-label': `${title}: values over time`,
      'aria-valuemin': 0,
      'aria-valuemax': 0,
      'aria-valuenow': 0,
      'aria-valuetext': 'no values yet',
    });
    this.#moment = el('p', { class: 'moment muted' });
    this.#legend = el('ul', { class: 'legend' });
    const caption = el('figcaption', {}, el('b', {}, title), ' ', this.#about, choice);
    show(figure, caption, this.#area, this.#moment, this.#legend);
    this.#area.addEventListener('keydown', (event) => this.#move(event));
    this.#area.addEventListener('blur', () => this.#point(null));
    new ResizeObserver(() => this.#resize()).observe(this.#area);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', () => this.#plot?.redraw());
  }

  /**
   * `series`: `{ name, label, mark, dash, values }`, the oldest value first; null: no value in that step. Steps that ended before `sinceMs` are a gap, since nothing was
   * counted then. `marks`: `{ atMs, kind }`, vertical lines. The current step is left out of the line, because it would look like a fall.
   */
  show({ stepMs, endMs, sinceMs, about, series, marks = [] }) {
    const steps = series[0]?.values.length ?? 0;
    const times = Array.from({ length: steps }, (_, i) => (endMs - (steps - i) * stepMs) / 1000);
    const first = times.findIndex((time) => time * 1000 + stepMs > sinceMs);
    const from = firstShown(steps, first);
    this.#data = { stepMs, series, times, first, from, marks };
    say(this.#about, steps === 0 ? 'none' : about);
    const shape = JSON.stringify(series.map(({ name, mark, dash }) => [name, mark, dash]));
    if (shape !== this.#shape || this.#plot === undefined) this.#build(shape);
    const newest = this.#newest();
    const drawn = (value, at) => (at < first || at > newest ? null : value);
    const lines = this.#isStacked ? stack(series) : series.map(({ values }) => values);
    this.#plot.setData([times, ...lines.map((values) => values.map(drawn))]);
    this.#area.setAttribute('aria-valuemin', from);
    this.#area.setAttribute('aria-valuemax', Math.max(0, steps - 1));
    if (this.#index !== null) this.#index = Math.max(from, Math.min(this.#index, steps - 1));
    this.#tell();
  }

  #build(shape) {
    this.#shape = shape;
    this.#plot?.destroy();
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const axis = {
      stroke: () => colour('--muted'),
      grid: { stroke: () => colour('--line'), width: 1 },
      ticks: { show: false },
    };
    const options = {
      width: Math.max(200, this.#area.clientWidth),
      height: this.#area.clientHeight,
      // Half of the last time label is beyond the last step.
      padding: [10, 30, null, null],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false, points: { size: 7 } },
      scales: {
        x: { range: () => [this.#data.times[this.#data.from] ?? 0, this.#data.times.at(-1) ?? 1] },
        y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 4] },
      },
      axes: [
        {
          ...axis,
          size: 26,
          space: (_, __, ___, ____, width) => (width < 400 ? 62 : 80),
          values: (_, splits, __, ___, step) =>
            splits.map((second) => (step < 60 ? clockTime : shortTime)(second * 1000)),
        },
        {
          ...axis,
          size: 66,
          space: 34,
          values: (_, splits) => splits.map((value) => (value === 0 ? '0' : this.#format(value))),
        },
      ],
      series: [
        {},
        ...this.#data.series.map(({ label, mark, dash }) => ({
          label,
          // Areas have no outline: the outline of an empty area would hide the edge below it.
          ...(this.#isStacked
            ? { width: 0, fill: () => `${colour(`--mark-${mark}`)}d0` }
            : { width: 2, dash, stroke: () => colour(`--mark-${mark}`) }),
          // A value between two gaps has no line, so it needs a point to be visible.
          points: { show: this.#isStacked ? isAlone : true, size: 5, stroke: () => colour(`--mark-${mark}`) },
        })),
      ],
      ...(this.#isStacked && {
        bands: this.#data.series.slice(1).map((_, i) => ({ series: [i + 2, i + 1] })),
      }),
      hooks: { setCursor: [(plot) => this.#hover(plot)], draw: [(plot) => this.#drawMarks(plot, colour)] },
    };
    this.#plot = new uPlot(options, [[], ...this.#data.series.map(() => [])], this.#area);
  }

  #drawMarks({ ctx, bbox, valToPos }, colour) {
    const { marks, times, stepMs, from } = this.#data;
    ctx.save();
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const { atMs, kind } of marks) {
      // A mark in the current step, which is not drawn, is moved to the edge.
      const at = Math.min(atMs / 1000, times.at(-1) ?? 0);
      if (!(at >= times[from] && atMs / 1000 <= at + stepMs / 1000)) continue;
      const x = Math.round(valToPos(at, 'x', true));
      ctx.strokeStyle = colour(markColours[kind]);
      ctx.fillStyle = ctx.strokeStyle;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.fillRect(x - 3 * devicePixelRatio, bbox.top, 6 * devicePixelRatio, 6 * devicePixelRatio);
    }
    ctx.restore();
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.#area;
    const isOther = width !== this.#plot?.width || height !== this.#plot.height;
    if (this.#plot !== undefined && width > 0 && isOther) this.#plot.setSize({ width, height });
  }

  #hover(plot) {
    const index = plot.cursor.idx ?? null;
    if (index === this.#index) return;
    this.#index = index;
    this.#tell();
  }

  #move(event) {
    const last = this.#data === undefined ? -1 : this.#data.times.length - 1;
    if (last < 0) return;
    const from = this.#index ?? last;
    const next = {
      ArrowLeft: from - 1,
      ArrowDown: from - 1,
      ArrowRight: from + 1,
      ArrowUp: from + 1,
      Home: this.#data.from,
      End: last,
    };
    if (event.key === 'Escape') return this.#point(null);
    if (!(event.key in next)) return;
    event.preventDefault();
    this.#point(Math.max(this.#data.from, Math.min(last, next[event.key])));
  }

  /** Puts the cursor on a step; null removes it. */
  #point(index) {
    if (this.#plot === undefined) return;
    const left = index === null ? -10 : this.#plot.valToPos(this.#data.times[index], 'x');
    this.#plot.setCursor({ left, top: index === null ? -10 : this.#plot.height / 2 });
    this.#index = index;
    this.#tell();
  }

  /** The last complete step; the current one if only that has values. */
  #newest() {
    const { times, series, first } = this.#data;
    const last = times.length - 1;
    const isEmpty = (at) => at < first || series.every(({ values }) => !values[at]);
    return last === first || (isEmpty(last - 1) && !isEmpty(last)) ? last : last - 1;
  }

  /** Writes the values of the step into the legend and the slider's text, which screen readers read. */
  #tell() {
    if (this.#data === undefined) return;
    const { times, series, stepMs, first } = this.#data;
    const at = this.#index ?? this.#newest();
    const remark = at < first ? ', before the start' : at === times.length - 1 ? ', not over yet' : '';
    const time =
      times[at] === undefined
        ? ''
        : `${clockTime(times[at] * 1000)} to ${clockTime(times[at] * 1000 + stepMs)}${remark}`;
    const valueText = ({ values }) => {
      const value = at < first ? undefined : values[at];
      return value === null || value === undefined ? 'none' : this.#format(value);
    };
    say(this.#moment, time === '' ? 'Nothing yet.' : `${this.#index === null ? 'Newest: ' : ''}${time}`);
    keep(
      this.#legend,
      series,
      () => [el('span', { class: 'swatch', 'aria-hidden': 'true' }), el('span', {}), ' ', el('b', {})],
      (one, item) => {
        item.firstElementChild.dataset.mark = one.mark;
        item.firstElementChild.dataset.dash = (one.dash ?? []).join(' ');
        say(item.children[1], one.label);
        say(item.lastElementChild, valueText(one));
      },
      'li',
    );
    this.#area.setAttribute('aria-valuenow', Math.max(0, at));
    const words = series.map((one) => `${one.label} ${valueText(one)}`).join(', ');
    this.#area.setAttribute('aria-valuetext', `${time}: ${words || 'nothing'}`);
  }
}

/** The first step of a chart or trend line: steps before the start, `first`, are left out. */
export function firstShown(steps, first) {
  return Math.max(0, Math.min(first, steps - leastSteps));
}

/** Colour by kind of mark; the table of marks uses the same. */
const markColours = { start: '--control', edit: '--accent', fault: '--bad', over: '--ok' };

/** Adds to each series the ones below it. */
function stack(series) {
  const sums = [];
  for (const { values } of series) {
    const below = sums.at(-1);
    sums.push(values.map((value, i) => value + (below?.[i] ?? 0)));
  }
  return sums;
}

/** Whether a series has fewer than two values, too few for a line. */
function isAlone({ data }, at) {
  return data[at].filter((value) => value !== null).length < 2;
}
