import { isAlias, isMap, isScalar, isSeq, type Pair, type YAMLMap } from 'yaml';
import { nearestName } from '../lib/nearest-name.ts';
import { hasErrors, type Problem, sortProblems } from '../lib/problem.ts';
import { offsetOf } from '../lib/yaml-source.ts';
import { type CutList, cutList, rowsOf } from './plain-rows.ts';
import {
  type OpenRow,
  type ProtectedResource,
  type ProtectedResources,
  parseResourceText,
  type ResourceText,
  resourceId,
  routeKey,
} from './protected-list.ts';
import { readRequire } from './protected-list-conditions.ts';
import { type ListSource, maxListLength, parseListSource, textOf } from './protected-list-source.ts';
import { isTokenLocation, type TokenLocation } from './token-locations.ts';

/** The list and its warnings; if there is an error, all problems and no list. */
type ParsedProtectedList =
  | { readonly list: ProtectedResources; readonly problems: readonly Problem[] }
  | { readonly list?: undefined; readonly problems: readonly Problem[] };

/** Longest list after the plain rows are cut out: some 15,000 rows with keys. The parser takes 40 MB of memory per megabyte. */
const maxFrameLength = 1_000_000;

/**
 * Parses the text of a protected list, and reports all problems at once with line and column. Pure; never throws.
 *
 * A list has `groups` (name -> rows), perhaps `tokenIn`, and as its last key `complete: true`: a half-written file is valid
 * YAML with fewer rows, and must not take effect. `withWarnings`: false saves time and memory.
 */
export function parseProtectedList(text: string, file: string, withWarnings = true): ParsedProtectedList {
  const reader = new ListReader(file);
  if (text.length > maxListLength) reader.complain(1, 1, 'the list is longer than 10 MB');
  else reader.read(cutList(text));
  for (const problem of rowProblems(reader.rows, withWarnings)) reader.problems.push(problem);
  for (const problem of rowProblems(reader.open, false)) reader.problems.push(problem);
  const { rows, open, problems, faults } = reader;
  // Drop other problems on a line with a syntax error: they are consequences of it.
  const faulty = new Set(faults.map(({ line }) => line));
  const all = sortProblems([...faults, ...problems.filter(({ line }) => !faulty.has(line))]);
  if (hasErrors(all)) return { problems: all };
  const list = Object.freeze({ file, rows: Object.freeze(rows), open: Object.freeze(open) });
  return { list, problems: all };
}

/** A repeated row is an error; the same route with other parameter names is a warning. Both name the line of the earlier row. */
function rowProblems(rows: readonly OpenRow[], withWarnings: boolean): Problem[] {
  const problems: Problem[] = [];
  const first = new Map<string, OpenRow>();
  /** Rows that share a key with an earlier row, by their text. */
  const repeated = new Map<string, OpenRow>();
  for (const row of rows) {
    const id = resourceId(row);
    const key = withWarnings ? routeKey(row) : id;
    const other = first.get(key);
    if (other === undefined) {
      first.set(key, row);
      continue;
    }
    const same = repeated.get(id) ?? (resourceId(other) === id ? other : undefined);
    repeated.set(id, row);
    const text =
      same === undefined
        ? `the same route as ${resourceId(other)} in line ${other.source.line}: a request matches both`
        : `the same row is in line ${same.source.line}`;
    problems.push({ ...row.source, severity: same === undefined ? 'warning' : 'error', text });
  }
  return problems;
}

class ListReader {
  readonly rows: ProtectedResource[] = [];
  readonly open: OpenRow[] = [];
  readonly problems: Problem[] = [];
  readonly faults: Problem[] = [];
  readonly #file: string;
  #runs: CutList['runs'] = [];
  #readRuns = 0;
  #tokenIn: RowLocations;

  constructor(file: string) {
    this.#file = file;
  }

  complain(line: number, column: number, text: string): void {
    this.problems.push({ file: this.#file, line, column, severity: 'error', text });
  }

  read({ frame, lines, runs }: CutList): void {
    if (frame.length > maxFrameLength) {
      const text = 'the list is too long for its form: write each row on a line of its own, after "- "';
      this.complain(1, 1, text);
      return;
    }
    this.#runs = runs;
    const source = this.#parse(frame, (line) => lines[line - 1] ?? line);
    this.#readRoot(source);
    const areAllRead = this.#readRuns === runs.length || this.problems.length + this.faults.length > 0;
    if (!areAllRead) this.complain(1, 1, 'some rows are in no group');
  }

  #parse(text: string, lineOf: (line: number) => number): ListSource {
    const source = parseListSource(text, this.#file, lineOf);
    for (const problem of source.problems) this.faults.push(problem);
    return source;
  }

  #complainAt(source: ListSource): Complain {
    return (offset, text) => this.problems.push(source.problemAt(offset, text));
  }

  #readRoot(source: ListSource): void {
    const { root } = source;
    const complain = this.#complainAt(source);
    if (!isMap(root)) {
      if (source.problems.length === 0)
        complain(offsetOf(root), 'a list has the keys tokenIn, groups and complete');
      return;
    }
    const keys = new Map<unknown, Pair>();
    const locations = root.items.find(({ key }) => isScalar(key) && key.value === 'tokenIn');
    this.#tokenIn = locations && readTokenIn(locations.value, offsetOf(locations.key), complain);
    for (const pair of root.items) {
      const key = isScalar(pair.key) ? pair.key.value : undefined;
      keys.set(key, pair);
      if (key === 'groups') this.#readGroups(pair, source);
      else if (key !== 'complete' && key !== 'tokenIn')
        complain(offsetOf(pair.key), unknownKey(key, 'a list', ['tokenIn', 'groups', 'complete']));
    }
    checkKeys(keys, root, complain);
  }

  #readGroups({ key, value }: Pair, source: ListSource): void {
    const complain = this.#complainAt(source);
    if (!isMap(value) || value.items.length === 0) {
      const fault = isAlias(value) ? aliasProblem : 'groups must be names with a list of rows each';
      complain(offsetOf(value, offsetOf(key)), fault);
      return;
    }
    for (const pair of value.items) {
      const name = textOf(pair.key);
      const offset = offsetOf(pair.key);
      if ('problem' in name) complain(offset, `the name of a group: ${name.problem}`);
      else if (name.text.trim() === '' || name.text === '__proto__') complain(offset, 'a group needs a name');
      if (!isSeq(pair.value) || pair.value.items.length === 0) {
        const fault = isAlias(pair.value)
          ? aliasProblem
          : 'a group is a list of rows, at least one, each after "- "';
        complain(offsetOf(pair.value, offset), fault);
        continue;
      }
      this.#readItems(pair.value.items, 'text' in name ? name.text : '', source);
    }
  }

  #readItems(items: readonly unknown[], group: string, source: ListSource): void {
    for (const item of items) {
      const next = isScalar(item) && item.value === rowsOf(this.#readRuns) && this.#runs[this.#readRuns];
      if (!next) {
        this.#readRow(item, group, source);
        continue;
      }
      this.#readRuns++;
      for (const { text, line, column } of next) {
        const parsed = parseResourceText(text);
        if ('problem' in parsed) this.complain(line, column + parsed.offset, parsed.problem);
        else this.#add(parsed, {}, group, { file: this.#file, line, column });
      }
    }
  }

  /** Reads `GET /carts` or `{ match: "GET /carts", scopes: [analyst], observe: true }`. */
  #readRow(item: unknown, group: string, source: ListSource): void {
    const before = this.problems.length;
    const complain = this.#complainAt(source);
    const fields = isMap(item) ? readLongForm(item.items, offsetOf(item), complain) : { match: item };
    if (fields.match === undefined) return;
    const text = readText(fields.match, complain);
    if (text === undefined || this.problems.length > before) return;
    const { line, column } = source.problemAt(offsetOf(item), '');
    this.#add(text, fields, group, { file: this.#file, line, column }, complain);
  }

  #add(
    { method, path }: ResourceText,
    fields: LongForm,
    group: string,
    source: ProtectedResource['source'],
    complain: Complain = () => {},
  ) {
    if (fields.open === true) {
      const isAlone = Object.keys(fields).length === 2;
      if (method !== 'POST' || !isAlone)
        this.complain(source.line, source.column, 'open: true is for a POST row without other keys');
      else
        this.open.push(Object.freeze({ method, template: path.text, group, source: Object.freeze(source) }));
      return;
    }
    const asked = (['scopes', 'require', 'proof'] as const).find((key) => key in fields);
    if (fields.credentials === 'shop' && asked !== undefined)
      this.complain(source.line, source.column, `${asked} cannot be checked where credentials: shop is set`);
    this.rows.push(
      Object.freeze({
        method,
        template: path.text,
        group,
        scopes: fields.scopes?.all ?? noScopes,
        ...(fields.scopes?.any && { anyScopes: fields.scopes.any }),
        ...(fields.require && { require: readRequire(fields.require, path, complain) }),
        tokenIn: 'tokenIn' in fields ? fields.tokenIn : this.#tokenIn,
        observe: fields.observe ?? false,
        credentials: fields.credentials,
        ...(fields.proof && { proof: fields.proof }),
        source: Object.freeze(source),
      }),
    );
  }
}

const noScopes: readonly string[] = Object.freeze([]);

function checkKeys(keys: ReadonlyMap<unknown, Pair>, root: YAMLMap, complain: Complain): void {
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
}

const aliasProblem = 'anchors and aliases are not allowed: write the rows out';

function unknownKey(key: unknown, owner: string, known: readonly string[]): string {
  const near = nearestName(String(key), known);
  const keys = `${known.slice(0, -1).join(', ')} and ${known.at(-1)}`;
  return near === undefined
    ? `unknown key: ${owner} has the keys ${keys}`
    : `unknown key: did you mean ${near}? ${owner} has the keys ${keys}`;
}

type Complain = (offset: number, text: string) => unknown;

/** scope-token of RFC 6749 section 3.3. */
const scopeToken = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** A row inside the text of another row: YAML folds a line with deeper indentation into the text above it. */
const rowInText = / - ([A-Z]{3,10} \/\S{0,200})/;

function readText(node: unknown, complain: Complain): ResourceText | undefined {
  const read = textOf(node);
  if ('problem' in read) {
    complain(offsetOf(node), read.problem);
    return undefined;
  }
  const below = isScalar(node) && node.type === 'PLAIN' ? rowInText.exec(read.text)?.[1] : undefined;
  if (below !== undefined) {
    const text = `"- ${below}" below is indented further than this row, so that YAML takes it for a part of this text`;
    complain(offsetOf(node), `${text}: indent both alike`);
    return undefined;
  }
  const parsed = parseResourceText(read.text);
  if (!('problem' in parsed)) return parsed;
  // In quoted and block scalars an offset in the text is not an offset in the file.
  const inside = isScalar(node) && node.type === 'PLAIN' ? parsed.offset : 0;
  complain(offsetOf(node) + inside, parsed.problem);
  return undefined;
}

interface LongForm {
  match?: unknown;
  scopes?: ReadScopes;
  /** Kept as YAML until the parameters of the path are known. */
  require?: YAMLMap;
  tokenIn?: RowLocations;
  observe?: boolean;
  open?: boolean;
  credentials?: 'shop' | undefined;
  proof?: 'required' | undefined;
}

const rowKeys = ['match', 'scopes', 'require', 'tokenIn', 'observe', 'open', 'credentials', 'proof'];

function readLongForm(pairs: readonly Pair[], offset: number, complain: Complain): LongForm {
  const fields: LongForm = {};
  for (const { key, value } of pairs) {
    const name = isScalar(key) ? key.value : undefined;
    if (name === 'match') fields.match = value;
    else if (name === 'scopes') fields.scopes = readScopes(value, offsetOf(key), complain);
    else if (name === 'require') {
      if (isMap(value) && value.items.length > 0) fields.require = value;
      else complain(offsetOf(value, offsetOf(key)), 'require is a map of conditions, at least one');
    } else if (name === 'tokenIn') fields.tokenIn = readTokenIn(value, offsetOf(key), complain);
    else if (name === 'observe') fields.observe = readFlag('observe', value, offsetOf(key), complain);
    else if (name === 'open') fields.open = readFlag('open', value, offsetOf(key), complain);
    else if (name === 'credentials')
      fields.credentials = readWord('credentials', 'shop', value, offsetOf(key), complain);
    else if (name === 'proof') fields.proof = readWord('proof', 'required', value, offsetOf(key), complain);
    else if (name === '<<') complain(offsetOf(key, offset), aliasProblem);
    else complain(offsetOf(key, offset), unknownKey(name, 'a row', rowKeys));
  }
  if (fields.match === undefined) complain(offset, 'the key match is missing, such as match: "GET /carts"');
  return fields;
}

interface ReadScopes {
  readonly all: readonly string[];
  readonly any?: readonly string[];
}

/** A list: all scopes are required. `{ any: [...] }`: one of them is. */
function readScopes(value: unknown, offset: number, complain: Complain): ReadScopes {
  const [pair] = isMap(value) && value.items.length === 1 ? value.items : [];
  const isAny = pair !== undefined && isScalar(pair.key) && pair.key.value === 'any';
  const scopes = readScopeList(isAny ? pair.value : value, offset, complain);
  return isAny ? { all: noScopes, any: scopes } : { all: scopes };
}

function readScopeList(value: unknown, offset: number, complain: Complain): readonly string[] {
  if (!isSeq(value) || value.items.length === 0) {
    const text = 'scopes is a list of at least one scope, or { any: [...] }; leave it out to require none';
    complain(offsetOf(value, offset), text);
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
  return Object.freeze([...scopes]);
}

/** Undefined: only the field `Authorization`. */
type RowLocations = ProtectedResource['tokenIn'];

function readTokenIn(value: unknown, offset: number, complain: Complain): RowLocations {
  const items = isSeq(value) ? value.items : [value];
  if (items.length === 0) complain(offset, 'tokenIn is a location, or a list of locations, at least one');
  const locations: TokenLocation[] = [];
  for (const item of items) {
    const read = textOf(item);
    if ('problem' in read) complain(offsetOf(item, offset), read.problem);
    else if (!isTokenLocation(read.text)) {
      const text =
        'a location is header, cookie:NAME, query:NAME or subprotocol:NAME (letters, digits, _ and -)';
      complain(offsetOf(item, offset), text);
    } else if (locations.some((location) => kindOf(location) === kindOf(read.text))) {
      complain(offsetOf(item, offset), `tokenIn may name only one ${kindOf(read.text)}`);
    } else locations.push(read.text);
  }
  return locations.length === 1 && locations[0] === 'header' ? undefined : Object.freeze(locations);
}

function kindOf(location: string): string {
  return location.split(':', 1)[0] ?? '';
}

function readFlag(name: string, value: unknown, offset: number, complain: Complain): boolean {
  if (isScalar(value) && typeof value.value === 'boolean') return value.value;
  complain(offsetOf(value, offset), `${name} is true or false`);
  return false;
}

function readWord<Word extends string>(
  name: string,
  word: Word,
  value: unknown,
  offset: number,
  complain: Complain,
): Word | undefined {
  if (isScalar(value) && value.value === word) return word;
  complain(offsetOf(value, offset), `${name} is ${word}, or left out`);
  return undefined;
}
