import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const folder = path.join(import.meta.dirname, '../../../src/admin/console');
const read = (name: string) => readFileSync(path.join(folder, name), 'utf8');
const base = read('base.css');

/** Custom properties of one CSS block. */
function coloursOf(css: string): Record<string, string> {
  return Object.fromEntries(
    [...css.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)].map(([, name, hex]) => [name, hex]),
  );
}
const darkAt = base.indexOf('@media (prefers-color-scheme: dark)');
const light = coloursOf(base.slice(0, darkAt));
const dark = { ...light, ...coloursOf(base.slice(darkAt)) };

/** WCAG 2.2, relative luminance. */
function luminance(hex: string): number {
  const part = (from: number) => {
    const share = Number.parseInt(hex.slice(from, from + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}
function contrast(one: string | undefined, other: string | undefined): number {
  if (one === undefined || other === undefined) throw new Error('no such colour');
  const [low = 0, high = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

describe.each([
  ['light', light],
  ['dark', dark],
] as const)('in %s', (_, colours) => {
  const marks = Object.keys(colours).filter((name) => name.startsWith('mark-'));

  it('marks of charts have a contrast of at least 3:1', () => {
    expect(marks.length).toBeGreaterThanOrEqual(4);
    for (const mark of marks) {
      for (const back of ['card', 'page']) {
        expect(contrast(colours[mark], colours[back]), `${mark} on ${back}`).toBeGreaterThanOrEqual(3);
      }
    }
  });

  it('states, controls and the focus have a contrast of at least 3:1', () => {
    for (const name of ['ok', 'warn', 'bad', 'control', 'accent']) {
      for (const back of ['card', 'page']) {
        expect(contrast(colours[name], colours[back]), `${name} on ${back}`).toBeGreaterThanOrEqual(3);
      }
    }
  });
});

it('only base.css has colours, and each mark of a chart has one', () => {
  for (const name of readdirSync(folder).filter((one) => one.endsWith('.css') && one !== 'base.css')) {
    expect(read(name), name).not.toMatch(/#[0-9a-f]{3,8}\b/i);
  }
  const drawn = readdirSync(folder)
    .filter((one) => one.endsWith('.js'))
    .flatMap((one) => [...read(one).matchAll(/mark: '([a-z]+)'/g)].map(([, mark]) => mark));
  expect(drawn.length).toBeGreaterThan(4);
  for (const mark of drawn) expect(light[`mark-${mark}`], mark).toBeDefined();
});
