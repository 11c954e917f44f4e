import { isMap, isScalar, isSeq, type Pair } from 'yaml';
import type { Problem } from '../config/problem.ts';
import type { ReadResource } from './protected-list-rows.ts';
import { type ListSource, offsetOf, textOf } from './protected-list-source.ts';
import { type ProtectedResource, parseResourceText, type ResourceText } from './protected-resource.ts';

type Complain = (offset: number, text: string) => void;

/** scope-token of RFC 6749 section 3.3. */
const scopeToken = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** Reads `GET /carts` or `{ match: "GET /carts", scopes: [analyst], observe: true }`; undefined when it is no row. */
export function readResource(
  item: unknown,
  group: string,
  source: ListSource,
  problems: Problem[],
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
  observe?: boolean;
}

function readLongForm(pairs: readonly Pair[], offset: number, complain: Complain): LongForm {
  const fields: LongForm = {};
  for (const { key, value } of pairs) {
    const name = isScalar(key) ? key.value : undefined;
    if (name === 'match') fields.match = value;
    else if (name === 'scopes') fields.scopes = readScopes(value, offsetOf(key), complain);
    else if (name === 'observe') fields.observe = readObserve(value, offsetOf(key), complain);
    else complain(offsetOf(key, offset), 'unknown key: a row has the keys match, scopes and observe');
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
    } else if (scopes.has(read.text)) complain(offsetOf(item), 'the same scope stands twice');
    else scopes.add(read.text);
  }
  return [...scopes];
}

function readObserve(value: unknown, offset: number, complain: Complain): boolean {
  if (isScalar(value) && typeof value.value === 'boolean') return value.value;
  complain(offsetOf(value, offset), 'observe is true or false');
  return false;
}
