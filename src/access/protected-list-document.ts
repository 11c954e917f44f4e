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
import {
  type Complain,
  type ListSource,
  maxListLength,
  parseListSource,
  textOf,
  within,
} from './protected-list-source.ts';
import { isTokenLocation, type TokenLocation } from './token-locations.ts';

/** The list and its warnings; if there is an error, all problems and no list. */
interface ParsedProtectedList {
  readonly list?: ProtectedResources;
  readonly problems: readonly Problem[];
}

/** Longest list after the plain rows are cut out: some 15,000 rows with keys. The parser takes 40 MB of memory per megabyte. */
const maxFrameLength = 1_000_000;

/**
 * Parses the text of a protected list, and reports all problems at once with line and column. Pure; never throws.
 *
 * A list has `groups` (name -> rows), perhaps `tokenIn`, and as its last key `complete: true`: a half-written file is valid
 * YAML with fewer rows, and must not take effect. `withWarnings`: false saves time and memory.
 */
export function parseProtectedList(text: string, file: string, withWarnings = true): ParsedProtectedList {
  const refuse = (fault: string): ParsedProtectedList => ({
    problems: [{ file, line: 1, column: 1, severity: 'error', text: fault }],
  });
  if (text.length > maxListLength) return refuse('the list is longer than 10 MB');
  const { frame, lines, runs } = cutList(text);
  if (frame.length > maxFrameLength)
    return refuse('the list is too long to parse: write each row on its own line, after "- "');
  const source = parseListSource(frame, file, (line) => lines[line - 1] ?? line);
  const reader = new ListReader(source, runs);
  reader.read();
  for (const problem of rowProblems(reader.rows, withWarnings)) reader.problems.push(problem);
  for (const problem of rowProblems(reader.open, false)) reader.problems.push(problem);
  const { rows, open, problems } = reader;
  const { problems: faults } = source;
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
  readonly #source: ListSource;
  readonly #runs: CutList['runs'];
  #readRuns = 0;
  #tokenIn: RowLocations;

  constructor(source: ListSource, runs: CutList['runs']) {
    this.#source = source;
    this.#runs = runs;
  }

  read(): void {
    this.#readRoot(this.#source.root);
    const areAllRead = this.#readRuns === this.#runs.length || this.problems.length > 0;
    if (!areAllRead && this.#source.problems.length === 0)
      this.#complainAt(1, 1, 'some rows are in no group');
  }

  #complainAt(line: number, column: number, text: string): void {
    this.problems.push({ file: this.#source.file, line, column, severity: 'error', text });
  }

  readonly #complain: Complain = (at, text) =>
    this.problems.push(this.#source.problemAt(typeof at === 'number' ? at : offsetOf(at), text));

  #readRoot(root: ListSource['root']): void {
    const complain = this.#complain;
    if (!isMap(root)) {
      if (this.#source.problems.length === 0)
        complain(root, 'a list has the keys tokenIn, groups and complete');
      return;
    }
    const keys = new Map<unknown, Pair>();
    const locations = root.items.find(({ key }) => isScalar(key) && key.value === 'tokenIn');
    this.#tokenIn = locations && readTokenIn(locations.value, within(locations.key, complain));
    for (const pair of root.items) {
      const key = isScalar(pair.key) ? pair.key.value : undefined;
      keys.set(key, pair);
      if (key === 'groups') this.#readGroups(pair);
      else if (key !== 'complete' && key !== 'tokenIn')
        complain(pair.key, unknownKey(key, 'a list', ['tokenIn', 'groups', 'complete']));
    }
    checkKeys(keys, root, complain);
  }

  #readGroups({ key, value }: Pair): void {
    const complain = within(key, this.#complain);
    if (!isMap(value) || value.items.length === 0) {
      complain(value, isAlias(value) ? aliasProblem : 'groups must map each name to a list of rows');
      return;
    }
    for (const { key: nameNode, value: rows } of value.items) {
      const name = textOf(nameNode, (at, text) => complain(at, `the name of a group: ${text}`));
      if (name?.trim() === '' || name === '__proto__') complain(nameNode, 'a group needs a name');
      if (isSeq(rows) && rows.items.length > 0) this.#readItems(rows.items, name ?? '');
      else {
        const fault = isAlias(rows)
          ? aliasProblem
          : 'a group is a list of rows, at least one, each after "- "';
        within(nameNode, complain)(rows, fault);
      }
    }
  }

  #readItems(items: readonly unknown[], group: string): void {
    for (const item of items) {
      const next = isScalar(item) && item.value === rowsOf(this.#readRuns) && this.#runs[this.#readRuns];
      if (!next) {
        this.#readRow(item, group);
        continue;
      }
      this.#readRuns++;
      for (const { text, line, column } of next) {
        const parsed = parseResourceText(text);
        if ('problem' in parsed) this.#complainAt(line, column + parsed.offset, parsed.problem);
        else this.#add(parsed, {}, group, line, column);
      }
    }
  }

  /** Reads `GET /carts` or `{ match: "GET /carts", scopes: [analyst], observe: true }`. */
  #readRow(item: unknown, group: string): void {
    const before = this.problems.length;
    const fields: LongForm = isMap(item) ? readLongForm(item, this.#complain) : { match: item };
    if (fields.match === undefined) return;
    const text = readText(fields.match, within(item, this.#complain));
    if (text === undefined || this.problems.length > before) return;
    const { line, column } = this.#source.problemAt(offsetOf(item), '');
    this.#add(text, fields, group, line, column);
  }

  #add({ method, path }: ResourceText, fields: LongForm, group: string, line: number, column: number): void {
    const source = Object.freeze({ file: this.#source.file, line, column });
    if (fields.open === true) {
      const isAlone = Object.keys(fields).length === 2;
      if (method === 'POST' && isAlone)
        this.open.push(Object.freeze({ method, template: path.text, group, source }));
      else this.#complainAt(line, column, 'open: true is for a POST row without other keys');
      return;
    }
    const asked = (['scopes', 'require', 'proof'] as const).find((key) => key in fields);
    if (fields.credentials === 'shop' && asked !== undefined)
      this.#complainAt(line, column, `${asked} cannot be checked where credentials: shop is set`);
    this.rows.push(
      Object.freeze({
        method,
        template: path.text,
        group,
        scopes: fields.scopes?.all ?? noScopes,
        ...(fields.scopes?.any && { anyScopes: fields.scopes.any }),
        ...(fields.require && { require: readRequire(fields.require, path, this.#complain) }),
        tokenIn: 'tokenIn' in fields ? fields.tokenIn : this.#tokenIn,
        observe: fields.observe ?? false,
        credentials: fields.credentials,
        ...(fields.proof && { proof: fields.proof }),
        source,
      }),
    );
  }
}

const noScopes: readonly string[] = Object.freeze([]);

function checkKeys(keys: ReadonlyMap<unknown, Pair>, root: YAMLMap, complain: Complain): void {
  const misspelled = [...keys.keys()].flatMap(
    (key) => nearestName(String(key), ['groups', 'complete']) ?? [],
  );
  if (!keys.has('groups') && !misspelled.includes('groups')) complain(root, 'the key groups is missing');
  const complete = keys.get('complete');
  if (complete === undefined) {
    if (!misspelled.includes('complete'))
      complain(root.range?.[2] ?? 0, 'the list does not end with "complete: true": was it cut off?');
  } else if (!isScalar(complete.value) || complete.value.value !== true) {
    within(complete.key, complain)(complete.value, 'complete must be true');
  } else if (root.items.at(-1) !== complete) complain(complete.key, 'complete: true must be the last key');
}

const aliasProblem = 'anchors and aliases are not allowed: write the rows out';

function unknownKey(key: unknown, owner: string, known: readonly string[]): string {
  const near = nearestName(String(key), known);
  const keys = `${known.slice(0, -1).join(', ')} and ${known.at(-1)}`;
  return near === undefined
    ? `unknown key: ${owner} has the keys ${keys}`
    : `unknown key: did you mean ${near}? ${owner} has the keys ${keys}`;
}

/** scope-token of RFC 6749 section 3.3. */
const scopeToken = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** A row inside the text of another row: YAML folds a line with deeper indentation into the text above it. */
const rowInText = / - ([A-Z]{3,10} \/\S{0,200})/;

function readText(node: unknown, complain: Complain): ResourceText | undefined {
  const text = textOf(node, complain);
  if (text === undefined) return undefined;
  const isPlain = isScalar(node) && node.type === 'PLAIN';
  const below = isPlain ? rowInText.exec(text)?.[1] : undefined;
  if (below !== undefined) {
    const problem = `"- ${below}" below is indented further than this row, so that YAML takes it for a part of this text`;
    complain(node, `${problem}: indent both alike`);
    return undefined;
  }
  const parsed = parseResourceText(text);
  if (!('problem' in parsed)) return parsed;
  // In quoted and block scalars an offset in the text is not an offset in the file.
  complain(offsetOf(node) + (isPlain ? parsed.offset : 0), parsed.problem);
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
  credentials?: 'shop';
  proof?: 'required';
}

/** How the value of each key is read. After a mistake the row is not used. */
const rowReaders: Readonly<Record<string, (value: unknown, complain: Complain) => unknown>> = {
  match: (value) => value,
  scopes: readScopes,
  require(value, complain) {
    if (isMap(value) && value.items.length > 0) return value;
    return complain(value, 'require is a map of conditions, at least one');
  },
  tokenIn: readTokenIn,
  observe: oneOf([true, false], 'observe is true or false'),
  open: oneOf([true, false], 'open is true or false'),
  credentials: oneOf(['shop'], 'credentials is shop, or left out'),
  proof: oneOf(['required'], 'proof is required, or left out'),
};

function oneOf(values: readonly unknown[], text: string): (typeof rowReaders)[string] {
  return (value, complain) =>
    isScalar(value) && values.includes(value.value) ? value.value : complain(value, text);
}

function readLongForm(row: YAMLMap, complainTo: Complain): LongForm {
  const complain = within(row, complainTo);
  const fields: Record<string, unknown> = {};
  for (const { key, value } of row.items) {
    const name = isScalar(key) ? String(key.value) : '';
    const read = Object.hasOwn(rowReaders, name) ? rowReaders[name] : undefined;
    if (read !== undefined) fields[name] = read(value, within(key, complain));
    else complain(key, name === '<<' ? aliasProblem : unknownKey(name, 'a row', Object.keys(rowReaders)));
  }
  if (!('match' in fields)) complain(row, 'the key match is missing, such as match: "GET /carts"');
  return fields;
}

interface ReadScopes {
  readonly all: readonly string[];
  readonly any?: readonly string[];
}

/** A list: all scopes are required. `{ any: [...] }`: one of them is. */
function readScopes(value: unknown, complain: Complain): ReadScopes {
  const [pair] = isMap(value) && value.items.length === 1 ? value.items : [];
  const isAny = pair !== undefined && isScalar(pair.key) && pair.key.value === 'any';
  const scopes = readScopeList(isAny ? pair.value : value, complain);
  return isAny ? { all: noScopes, any: scopes } : { all: scopes };
}

function readScopeList(value: unknown, complain: Complain): readonly string[] {
  if (!isSeq(value) || value.items.length === 0) {
    complain(
      value,
      'scopes is a list of at least one scope, or { any: [...] }; leave it out to require none',
    );
    return [];
  }
  const scopes = new Set<string>();
  for (const item of value.items) {
    const scope = textOf(item, complain);
    if (scope === undefined) continue;
    if (!scopeToken.test(scope))
      complain(item, 'a scope is printable ASCII without spaces, double quotes and backslashes');
    else if (scopes.has(scope)) complain(item, 'the same scope appears twice');
    else scopes.add(scope);
  }
  return Object.freeze([...scopes]);
}

/** Undefined: only the field `Authorization`. */
type RowLocations = ProtectedResource['tokenIn'];

function readTokenIn(value: unknown, complain: Complain): RowLocations {
  const items = isSeq(value) ? value.items : [value];
  if (items.length === 0) complain(null, 'tokenIn is a location, or a list of locations, at least one');
  const locations: TokenLocation[] = [];
  for (const item of items) {
    const text = textOf(item, complain);
    if (text === undefined) continue;
    if (!isTokenLocation(text)) {
      complain(
        item,
        'a location is header, cookie:NAME, query:NAME or subprotocol:NAME (letters, digits, _ and -)',
      );
    } else if (locations.some((location) => kindOf(location) === kindOf(text))) {
      complain(item, `tokenIn may name only one ${kindOf(text)}`);
    } else locations.push(text);
  }
  return locations.length === 1 && locations[0] === 'header' ? undefined : Object.freeze(locations);
}

function kindOf(location: string): string {
  return location.split(':', 1)[0] ?? '';
}
