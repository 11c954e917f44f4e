import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { type Code, code, type Step, steps, traces, violationsOf } from './purge-model.ts';

const source = path.join(import.meta.dirname, '../../../src/url-resolver');
const folder = mkdtempSync(path.join(tmpdir(), 'shopward-broken-'));
afterAll(() => rmSync(folder, { recursive: true }));
let written = 0;

/** A copy of a module of src, with `from` replaced by `to`. */
async function breakModule<T>(name: string, from: string, to: string): Promise<T> {
  const text = readFileSync(path.join(source, name), 'utf8');
  if (!text.includes(from)) throw new Error(`${name} has no ${from}`);
  const moved = text
    .replace(from, to)
    .replaceAll(/from '(\.[^']*)'/g, (_, target) => `from '${pathToFileURL(path.join(source, target))}'`);
  const file = path.join(folder, `${written++}-${name}`);
  writeFileSync(file, moved);
  return import(pathToFileURL(file).href) as Promise<T>;
}

const breakFollower = async (from: string, to: string) => ({
  follower: await breakModule<Code['follower']>('purges.ts', from, to),
});
const breakCache = async (from: string, to: string) => ({
  cache: await breakModule<Code['cache']>('mapping-cache.ts', from, to),
});

/** Each entry breaks one rule of docs/decisions/url-mapping-purge.md. */
const broken: Readonly<Record<string, () => Promise<Partial<Code>> | Partial<Code>>> = {
  'a stamp ignores purges of a prefix': () => breakFollower('stamp = version;', '{}'),
  'a stamp ignores purges of its URL': () => breakFollower('this.#urls.get(foldedUrl) ?? 0', '0'),
  'a stamp ignores purges of everything': () => breakFollower('Math.max(this.#everything, ', 'Math.max(0, '),
  'an older purge lowers a stamp': () => breakFollower('isCovered && version > stamp', 'isCovered'),
  'a process keeps its mappings although purges may be lost': () =>
    breakFollower("this.purges.add('all');", ''),
  'of several missed purges only the last is read': () =>
    breakFollower('missed.toReversed()', 'missed.slice(0, 1)'),
  'a purge ends before its process has read it': () =>
    breakFollower('if (!(await this.catchUp()))', 'if (false)'),
  'the stamp is taken at the end of the look-up': () =>
    breakCache('lookup, key, stamp) };', 'lookup, key, this.#options.purges.stampOf(lookup.url)) };'),
  'a request joins a look-up from before a purge': () =>
    breakCache('begun?.stamp === stamp', 'begun !== undefined'),
};

/** The first sequence of steps with a violation, of the traces and `runs` random ones. */
async function findViolation(given: Code, seed: number, runs: number): Promise<readonly Step[] | undefined> {
  for (const taken of [...traces, ...fc.sample(steps, { seed, numRuns: runs })]) {
    if ((await violationsOf(taken, given)).length > 0) return taken;
  }
  return undefined;
}

it('300 random sequences: no answer is older than a purge that its process knew at the request', async () => {
  expect(await findViolation(code, 2, 300)).toBeUndefined();
});

describe('the model notices when', () => {
  it.each(Object.entries(broken))('%s', async (_, breakRule) => {
    expect(await findViolation({ ...code, ...(await breakRule()) }, 1, 1500)).toBeDefined();
  });
});
