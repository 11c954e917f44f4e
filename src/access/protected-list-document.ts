import { isAlias, isMap, isScalar, isSeq, type Pair } from 'yaml';
import { hasErrors, type Problem, sortProblems } from '../config/problem.ts';
import { readResource } from './protected-list-row.ts';
import { type ReadResource, resourceProblems } from './protected-list-rows.ts';
import { type ListSource, offsetOf, parseListSource, textOf } from './protected-list-source.ts';
import type { ProtectedResource } from './protected-resource.ts';

/** A list that may take effect: at least one row, each of which can match. */
export interface ProtectedResources {
  readonly file: string;
  /** In the order of the file. */
  readonly rows: readonly ProtectedResource[];
}

/** The list with its warnings, or every problem with at least one error among them. */
export type ParsedProtectedList =
  | { readonly list: ProtectedResources; readonly problems: readonly Problem[] }
  | { readonly list?: undefined; readonly problems: readonly Problem[] };

/**
 * Parses the text of a protected list, and reports all problems at once with line and column. Pure; never throws.
 *
 * A list is `groups` (name -> rows) and, as its last key, `complete: true`: a half-written file is valid YAML with
 * fewer rows, and must not take effect. The same row twice is an error; the same route with other parameter names,
 * and rows that overlap, are warnings.
 */
export function parseProtectedList(text: string, file: string): ParsedProtectedList {
  const source = parseListSource(text, file);
  const problems: Problem[] = [];
  const read = readDocument(source, problems);
  problems.push(...resourceProblems(read, source));
  const all = sortProblems([...source.problems, ...problems.filter((one) => !isOnFaultyLine(one, source))]);
  if (hasErrors(all)) return { problems: all };
  return { list: Object.freeze({ file, rows: Object.freeze(read.map(({ row }) => row)) }), problems: all };
}

/** Where the YAML itself is broken, what the parser made of that line means nothing. */
function isOnFaultyLine({ line }: Problem, source: ListSource): boolean {
  return source.problems.some((problem) => problem.line === line);
}

function readDocument(source: ListSource, problems: Problem[]): ReadResource[] {
  const { root } = source;
  const complain = (offset: number, text: string) => problems.push(source.problemAt(offset, text));
  if (!isMap(root)) {
    if (source.problems.length === 0) complain(offsetOf(root), 'a list has the keys groups and complete');
    return [];
  }
  const read: ReadResource[] = [];
  const keys = new Map<unknown, Pair>();
  for (const pair of root.items) {
    const key = isScalar(pair.key) ? pair.key.value : undefined;
    keys.set(key, pair);
    if (key === 'groups') read.push(...readGroups(pair, source, problems));
    else if (key !== 'complete')
      complain(offsetOf(pair.key), 'unknown key: a list has the keys groups and complete');
  }
  if (!keys.has('groups')) complain(offsetOf(root), 'the key groups is missing');
  const complete = keys.get('complete');
  if (complete === undefined) {
    complain(root.range?.[2] ?? 0, 'the list does not end with "complete: true": was it cut off?');
  } else if (!isScalar(complete.value) || complete.value.value !== true) {
    complain(offsetOf(complete.value, offsetOf(complete.key)), 'complete must be true');
  } else if (root.items.at(-1) !== complete) {
    complain(offsetOf(complete.key), 'complete: true must be the last key');
  }
  return read;
}

function readGroups({ key, value }: Pair, source: ListSource, problems: Problem[]): ReadResource[] {
  const complain = (offset: number, text: string) => problems.push(source.problemAt(offset, text));
  if (!isMap(value) || value.items.length === 0) {
    const fault = isAlias(value)
      ? 'aliases are not allowed'
      : 'groups must be names with a list of rows each';
    complain(offsetOf(value, offsetOf(key)), fault);
    return [];
  }
  return value.items.flatMap((pair) => {
    const name = textOf(pair.key);
    const offset = offsetOf(pair.key);
    if ('problem' in name) complain(offset, `the name of a group: ${name.problem}`);
    else if (name.text.trim() === '' || name.text === '__proto__') complain(offset, 'a group needs a name');
    if (!isSeq(pair.value) || pair.value.items.length === 0) {
      complain(offsetOf(pair.value, offset), 'a group is a list of rows, at least one, each behind "- "');
      return [];
    }
    const group = 'text' in name ? name.text : '';
    return pair.value.items.flatMap((item) => readResource(item, group, source, problems) ?? []);
  });
}
