import { isAlias, isMap, isScalar, isSeq, type Pair } from 'yaml';
import { nearestName } from '../lib/nearest-name.ts';
import { hasErrors, type Problem, sortProblems } from '../lib/problem.ts';
import { offsetOf } from '../lib/yaml-source.ts';
import {
  type ProtectedResource,
  type ProtectedResources,
  parseResourceText,
  type ResourceText,
} from './protected-list.ts';
import { type ReadResource, resourceProblems } from './protected-list-overlaps.ts';
import { type ListSource, parseListSource, textOf } from './protected-list-source.ts';
import { isTokenPlace, type TokenPlace } from './token-places.ts';

/** The list with its warnings, or every problem with at least one error among them. */
type ParsedProtectedList =
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
  for (const problem of resourceProblems(read, source)) problems.push(problem);
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
    if (source.problems.length === 0)
      complain(offsetOf(root), 'a list has the keys tokenIn, groups and complete');
    return [];
  }
  const read: ReadResource[] = [];
  const keys = new Map<unknown, Pair>();
  const places = root.items.find(({ key }) => isScalar(key) && key.value === 'tokenIn');
  const tokenIn = places && readTokenIn(places.value, offsetOf(places.key), complain);
  for (const pair of root.items) {
    const key = isScalar(pair.key) ? pair.key.value : undefined;
    keys.set(key, pair);
    if (key === 'groups') for (const row of readGroups(pair, source, problems, tokenIn)) read.push(row);
    else if (key !== 'complete' && key !== 'tokenIn')
      complain(offsetOf(pair.key), unknownKey(key, 'a list', ['tokenIn', 'groups', 'complete']));
  }
  const misspelled = [...keys.keys()].flatMap(
    (key) => nearestName(String(key), ['groups', 'complete']) ?? [],
  );
  if (!keys.has('groups') && !misspelled.includes('groups'))
    complain(offsetOf(root), 'the key groups is missing');
  const complete = keys.get('complete');
  if (complete === undefined) {
    if (!misspelled.includes('complete'))
      complain(root.range?.[2] ?? 0, 'the list does not end with "complete: true": was it cut off?');
  } else if (!isScalar(complete.value) || complete.value.value !== true) {
    complain(offsetOf(complete.value, offsetOf(complete.key)), 'complete must be true');
  } else if (root.items.at(-1) !== complete) {
    complain(offsetOf(complete.key), 'complete: true must be the last key');
  }
  return read;
}

function readGroups(
  { key, value }: Pair,
  source: ListSource,
  problems: Problem[],
  tokenIn: RowPlaces,
): ReadResource[] {
  const complain = (offset: number, text: string) => problems.push(source.problemAt(offset, text));
  if (!isMap(value) || value.items.length === 0) {
    const fault = isAlias(value) ? aliasProblem : 'groups must be names with a list of rows each';
    complain(offsetOf(value, offsetOf(key)), fault);
    return [];
  }
  return value.items.flatMap((pair) => {
    const name = textOf(pair.key);
    const offset = offsetOf(pair.key);
    if ('problem' in name) complain(offset, `the name of a group: ${name.problem}`);
    else if (name.text.trim() === '' || name.text === '__proto__') complain(offset, 'a group needs a name');
    if (!isSeq(pair.value) || pair.value.items.length === 0) {
      const fault = isAlias(pair.value)
        ? aliasProblem
        : 'a group is a list of rows, at least one, each after "- "';
      complain(offsetOf(pair.value, offset), fault);
      return [];
    }
    const group = 'text' in name ? name.text : '';
    return pair.value.items.flatMap((item) => readResource(item, group, source, problems, tokenIn) ?? []);
  });
}

const aliasProblem = 'anchors and aliases are not allowed: write the rows out';

function unknownKey(key: unknown, owner: string, known: readonly string[]): string {
  const near = nearestName(String(key), known);
  const keys = `${known.slice(0, -1).join(', ')} and ${known.at(-1)}`;
  return near === undefined
    ? `unknown key: ${owner} has the keys ${keys}`
    : `unknown key: did you mean ${near}? ${owner} has the keys ${keys}`;
}

type Complain = (offset: number, text: string) => void;

/** scope-token of RFC 6749 section 3.3. */
const scopeToken = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** Reads `GET /carts` or `{ match: "GET /carts", scopes: [analyst], observe: true }`; undefined when it is no row. */
function readResource(
  item: unknown,
  group: string,
  source: ListSource,
  problems: Problem[],
  tokenIn?: RowPlaces,
): ReadResource | undefined {
  let isFaulty = false;
  const complain: Complain = (offset, text) => {
    isFaulty = true;
    problems.push(source.problemAt(offset, text));
  };
  const fields = isMap(item) ? readLongForm(item.items, offsetOf(item), complain) : { match: item };
  if (fields.match === undefined) return undefined;
  const text = readText(fields.match, complain);
  if (text === undefined || isFaulty) return undefined;
  const { line, column } = source.problemAt(offsetOf(item), '');
  const row: ProtectedResource = Object.freeze({
    method: text.method,
    template: text.path.text,
    group,
    scopes: Object.freeze(fields.scopes ?? []),
    tokenIn: 'tokenIn' in fields ? fields.tokenIn : tokenIn,
    observe: fields.observe ?? false,
    source: Object.freeze({ file: source.file, line, column }),
  });
  return { row, path: text.path, offset: offsetOf(fields.match) };
}

function readText(node: unknown, complain: Complain): ResourceText | undefined {
  const read = textOf(node);
  if ('problem' in read) {
    complain(offsetOf(node), read.problem);
    return undefined;
  }
  const parsed = parseResourceText(read.text);
  if (!('problem' in parsed)) return parsed;
  // Inside quotes and blocks an offset of the text is none of the file.
  const inside = isScalar(node) && node.type === 'PLAIN' ? parsed.offset : 0;
  complain(offsetOf(node) + inside, parsed.problem);
  return undefined;
}

interface LongForm {
  match?: unknown;
  scopes?: string[];
  tokenIn?: RowPlaces;
  observe?: boolean;
}

function readLongForm(pairs: readonly Pair[], offset: number, complain: Complain): LongForm {
  const fields: LongForm = {};
  for (const { key, value } of pairs) {
    const name = isScalar(key) ? key.value : undefined;
    if (name === 'match') fields.match = value;
    else if (name === 'scopes') fields.scopes = readScopes(value, offsetOf(key), complain);
    else if (name === 'tokenIn') fields.tokenIn = readTokenIn(value, offsetOf(key), complain);
    else if (name === 'observe') fields.observe = readObserve(value, offsetOf(key), complain);
    else if (name === '<<') complain(offsetOf(key, offset), aliasProblem);
    else
      complain(offsetOf(key, offset), unknownKey(name, 'a row', ['match', 'scopes', 'tokenIn', 'observe']));
  }
  if (fields.match === undefined) complain(offset, 'the key match is missing, such as match: "GET /carts"');
  return fields;
}

function readScopes(value: unknown, offset: number, complain: Complain): string[] {
  if (!isSeq(value) || value.items.length === 0) {
    complain(offsetOf(value, offset), 'scopes is a list of scopes, at least one; leave it out for none');
    return [];
  }
  const scopes = new Set<string>();
  for (const item of value.items) {
    const read = textOf(item);
    if ('problem' in read) complain(offsetOf(item, offset), read.problem);
    else if (!scopeToken.test(read.text)) {
      complain(offsetOf(item), 'a scope is printable ASCII without spaces, quotes and backslashes');
    } else if (scopes.has(read.text)) complain(offsetOf(item), 'the same scope appears twice');
    else scopes.add(read.text);
  }
  return [...scopes];
}

/** Undefined: the field `Authorization` alone. */
type RowPlaces = ProtectedResource['tokenIn'];

function readTokenIn(value: unknown, offset: number, complain: Complain): RowPlaces {
  const items = isSeq(value) ? value.items : [value];
  if (items.length === 0) complain(offset, 'tokenIn is a place, or a list of places, at least one');
  const places: TokenPlace[] = [];
  for (const item of items) {
    const read = textOf(item);
    if ('problem' in read) complain(offsetOf(item, offset), read.problem);
    else if (!isTokenPlace(read.text)) {
      const text =
        'a place is header, cookie:NAME, query:NAME or subprotocol:NAME (letters, digits, _ and -)';
      complain(offsetOf(item, offset), text);
    } else if (places.some((place) => kindOf(place) === kindOf(read.text))) {
      complain(offsetOf(item, offset), `the token has one ${kindOf(read.text)} at most`);
    } else places.push(read.text);
  }
  return places.length === 1 && places[0] === 'header' ? undefined : Object.freeze(places);
}

function kindOf(place: string): string {
  return place.split(':', 1)[0] ?? '';
}

function readObserve(value: unknown, offset: number, complain: Complain): boolean {
  if (isScalar(value) && typeof value.value === 'boolean') return value.value;
  complain(offsetOf(value, offset), 'observe is true or false');
  return false;
}
