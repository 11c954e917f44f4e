import { el, svg } from './dom.js';
import { count } from './words.js';

/** Units of the drawing, which is stretched to its place. */
const width = 600;
const height = 100;

/** Stacked bars, the oldest first. `series`: `{ name, values }`, drawn from the bottom up. */
export function drawBars(series) {
  const steps = series[0].values.length;
  const sums = Array.from({ length: steps }, (_, i) =>
    series.reduce((sum, { values }) => sum + values[i], 0),
  );
  const most = Math.max(1, ...sums);
  const words = series.map(({ name, values }) => `${count(values.reduce((a, b) => a + b, 0))} ${name}`);
  const bars = Array.from({ length: steps }, (_, i) => stack(series, i, width / steps, height / most));
  return [
    el('p', { class: 'scale', 'aria-hidden': 'true' }, `${count(most)} in 5 s`),
    svg(
      'svg',
      {
        viewBox: `0 0 ${width} ${height}`,
        preserveAspectRatio: 'none',
        role: 'img',
        'aria-label': `In five minutes: ${words.join(', ')}`,
      },
      bars.flat(),
    ),
    el(
      'p',
      { class: 'scale span', 'aria-hidden': 'true' },
      el('span', {}, '5 min ago'),
      el('span', {}, 'now'),
    ),
  ];
}

function stack(series, i, step, scale) {
  let y = height;
  return series.flatMap(({ name, values }) => {
    if (values[i] === 0) return [];
    // What happened once among thousands must still be seen.
    const length = Math.min(Math.max(2, values[i] * scale), y);
    y -= length;
    const place = { x: i * step, y, width: step * 0.8, height: length };
    return svg('rect', { class: `bar ${name}`, ...place });
  });
}
