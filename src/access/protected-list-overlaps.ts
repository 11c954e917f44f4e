import { foldSegment } from '../http/path-folding.ts';
import {
  isTemplateProblem,
  type PathTemplate,
  parsePathTemplate,
  templateShape,
} from '../http/path-template.ts';
import type { Problem } from '../lib/problem.ts';
import type { Steps } from '../lib/slices.ts';
import { type ProtectedResource, resourceId } from './protected-list.ts';

/**
 * Problems of rows with one another, an earlier row named by its line: the same row twice is an error, routes that overlap
 * are warnings.
 */
export function* rowProblems(rows: readonly ProtectedResource[], withWarnings: boolean): Steps<Problem[]> {
  const problems: Problem[] = [];
  const overlaps = createOverlaps();
  const byText = new Map<string, ProtectedResource>();
  const byShape = new Map<string, ProtectedResource>();
  const complain = ({ source }: ProtectedResource, severity: 'error' | 'warning', text: string) =>
    problems.push({ ...source, severity, text });
  for (const row of rows) {
    yield;
    const id = resourceId(row);
    const same = byText.get(id);
    byText.set(id, row);
    if (same) complain(row, 'error', `the same row is in line ${same.source.line}`);
    if (same || !withWarnings) continue;
    const path = parsePathTemplate(row.template);
    if (isTemplateProblem(path)) continue;
    const shape = `${row.method} ${templateShape(path, foldSegment)}`;
    const route = byShape.get(shape);
    const other = route ?? overlaps.add(row, path);
    if (route === undefined) byShape.set(shape, row);
    if (other === undefined) continue;
    const place = `${resourceId(other)} in line ${other.source.line}`;
    const text = route
      ? `the same route as ${place}: a request matches both`
      : `overlaps with ${place}: a request may match both`;
    complain(row, 'warning', text);
  }
  return problems;
}

/** Finds rows that one request may meet, both by its plain interpretation. */
interface Overlaps {
  /** Adds a row; the earliest row added before that overlaps with it, or undefined. */
  add(row: ProtectedResource, path: PathTemplate): ProtectedResource | undefined;
}

/** Rows whose literals stand at the same places. */
interface Kind {
  readonly method: ProtectedResource['method'];
  /** Places of the literals. */
  readonly places: readonly number[];
  readonly length: number;
  readonly rest: boolean;
  readonly entries: Entry[];
  /** For some of the places: the literals there -> the earliest row that has them. */
  readonly indexes: Map<string, Map<string, Entry>>;
}

interface Entry {
  readonly index: number;
  readonly row: ProtectedResource;
  /** Folded; undefined for a parameter. */
  readonly literals: readonly (string | undefined)[];
}

/**
 * Two rows overlap when they have the same literals at the places where both have one. So each row is looked up once
 * in each kind of row, by those literals: the cost grows with rows times kinds (a handful), not with rows squared.
 * Exported for its tests.
 */
export function createOverlaps(): Overlaps {
  const kinds = new Map<string, Kind>();
  let count = 0;
  return {
    add(row, path) {
      const literals = path.segments.map((one) => ('literal' in one ? foldSegment(one.literal) : undefined));
      const entry: Entry = { index: count++, row, literals };
      const own = kindOf(entry, path.rest);
      let earliest: Entry | undefined;
      for (const kind of kinds.values()) {
        const met = canMeet(own, kind) ? find(kind, entry) : undefined;
        if (met && met.index < (earliest?.index ?? count)) earliest = met;
      }
      const key = `${own.method} ${own.length} ${own.rest} ${own.places}`;
      const kind = kinds.get(key) ?? own;
      kinds.set(key, kind);
      kind.entries.push(entry);
      for (const [places, index] of kind.indexes) enter(index, places, entry);
      return earliest?.row;
    },
  };
}

function kindOf({ row, literals }: Entry, rest: boolean): Kind {
  const places = [...literals.keys()].filter((place) => literals[place] !== undefined);
  return { method: row.method, places, length: literals.length, rest, entries: [], indexes: new Map() };
}

function canMeet(one: Kind, other: Kind): boolean {
  if (one.method !== other.method && one.method !== 'ANY' && other.method !== 'ANY') return false;
  if (one.length === other.length) return true;
  return one.length < other.length ? one.rest : other.rest;
}

function find(kind: Kind, { literals }: Entry): Entry | undefined {
  const places = kind.places.filter((place) => literals[place] !== undefined).join();
  let index = kind.indexes.get(places);
  if (index === undefined) {
    index = new Map();
    for (const entry of kind.entries) enter(index, places, entry);
    kind.indexes.set(places, index);
  }
  return index.get(literalsAt(places, literals));
}

function enter(index: Map<string, Entry>, places: string, entry: Entry): void {
  const key = literalsAt(places, entry.literals);
  if (!index.has(key)) index.set(key, entry);
}

function literalsAt(places: string, literals: readonly (string | undefined)[]): string {
  if (places === '') return '';
  return places
    .split(',')
    .map((place) => literals[Number(place)])
    .join('/');
}
