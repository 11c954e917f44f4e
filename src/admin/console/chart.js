import { svg } from './dom.js';
import { count } from './words.js';

const width = 600;
const height = 120;
const top = 14;

/** Stacked bars, the oldest first. `series`: `{ name, values }`, drawn from the bottom up. */
export function drawBars(series) {
  const steps = series[0].values.length;
  const sums = Array.from({ length: steps }, (_, i) =>
    series.reduce((sum, { values }) => sum + values[i], 0),
  );
  const most = Math.max(1, ...sums);
  const step = width / steps;
  const scale = (height - top) / most;
  const bars = [];
  for (let i = 0; i < steps; i++) {
    let y = height;
    for (const { name, values } of series) {
      if (values[i] === 0) continue;
      // What happened once among thousands must still be seen.
      const length = Math.max(2, values[i] * scale);
      y -= length;
      bars.push(
        svg('rect', {
          class: `bar ${name}`,
          x: (i * step).toFixed(2),
          y: y.toFixed(2),
          width: (step - 1.5).toFixed(2),
          height: length.toFixed(2),
        }),
      );
    }
  }
  const words = series.map(({ name, values }) => `${count(values.reduce((a, b) => a + b, 0))} ${name}`);
  return svg(
    'svg',
    {
      viewBox: `0 0 ${width} ${height + 16}`,
      role: 'img',
      'aria-label': `In five minutes: ${words.join(', ')}`,
    },
    svg('line', { class: 'axis', x1: 0, x2: width, y1: height, y2: height }),
    svg('line', { class: 'grid', x1: 0, x2: width, y1: top, y2: top }),
    svg('text', { class: 'label', x: 0, y: top - 4 }, `${count(most)} in 5 s`),
    svg('text', { class: 'label', x: 0, y: height + 13 }, '5 min ago'),
    svg('text', { class: 'label', x: width, y: height + 13, 'text-anchor': 'end' }, 'now'),
    ...bars,
  );
}
