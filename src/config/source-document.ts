import { isAlias, isMap, isPair, isScalar, isSeq, type Node } from 'yaml';
import { offsetOf, parseYaml, syntaxTexts } from '../lib/yaml-source.ts';
import type { SettingProblem } from './issues.ts';
import { type JsonSchema, type SettingPath, schemasAt } from './json-schema.ts';

/** Texts for errors of the parser, whose own messages quote a part of the file, which may be a secret. */
const parserTexts: Readonly<Record<string, string>> = {
  ...syntaxTexts,
  BAD_ALIAS: 'a malformed alias; put quotes around a value that begins with *',
  BAD_DQ_ESCAPE: 'an unknown escape in a double-quoted text',
  BAD_SCALAR_START: 'a value must not begin with this character; put quotes around it',
  BLOCK_AS_IMPLICIT_KEY:
    'a key has several lines, or a line has two keys; put quotes around a text with a colon',
  MISSING_CHAR: 'a closing quote, bracket, comma or colon is missing',
  NON_STRING_KEY: 'a key must be plain text',
  TAG_RESOLVE_FAILED: 'unknown tag; put quotes around a value that begins with !',
  RESOURCE_EXHAUSTION: 'this is nested too deeply',
  UNEXPECTED_TOKEN: 'this does not belong here; put quotes around a value with { } [ ] or a comma',
};

/** Parses the YAML of a configuration. The parser's warnings are errors; aliases are refused (their values can explode). */
export function parseSourceDocument(text: string, file: string) {
  const { document, fault, problemAt } = parseYaml(text, file, true);
  const all = document === undefined ? [] : [...document.errors, ...document.warnings];
  // Report only the first one: most others follow from it.
  const [first] = all.toSorted((a, b) => a.pos[0] - b.pos[0]);
  const mistake = first && problemAt(first.pos[0], parserTexts[first.code] ?? 'this is not valid YAML');
  const root = document?.contents ?? null;
  return {
    root,
    problems: [fault ?? mistake ?? []].flat(),
    /** A problem at the position of a setting, or of its nearest ancestor where the setting itself is missing. */
    problemAt: (
      path: SettingPath,
      problem: string,
      { at, severity }: Omit<SettingProblem, 'path' | 'text'> = {},
    ) => problemAt(offsetAt(root, path, at), problem, severity),
    /** The text of a setting in the file, with its references; undefined: it is missing, or not a scalar. */
    textAt(path: SettingPath): string | undefined {
      let node: unknown = root;
      for (const step of path) node = childOf(node, step)?.value;
      return isScalar(node) && typeof node.value === 'string' ? node.value : undefined;
    },
  };
}

function offsetAt(root: Node | null, path: SettingPath, part?: 'key'): number {
  let node: unknown = root;
  let offset = offsetOf(root);
  for (const [index, step] of path.entries()) {
    const found = childOf(node, step);
    if (found === undefined) return offset;
    offset = found.offset;
    node = found.value;
    const isLast = index === path.length - 1;
    if (isLast && part !== 'key' && hasText(node)) return node.range?.[0] ?? offset;
  }
  return offset;
}

function hasText(node: unknown): node is Node {
  if (isScalar(node)) return node.range !== undefined && node.range !== null && node.range[1] > node.range[0];
  return isMap(node) || isSeq(node) || isAlias(node);
}

function childOf(node: unknown, step: string | number): { offset: number; value: unknown } | undefined {
  if (isSeq(node)) {
    const item = node.items[Number(step)];
    return item === undefined ? undefined : { offset: offsetOfNode(item), value: item };
  }
  if (!isMap(node)) return undefined;
  for (const { key, value } of node.items) {
    if (isScalar(key) && String(key.value) === String(step)) return { offset: offsetOfNode(key), value };
  }
  return undefined;
}

function offsetOfNode(node: unknown): number {
  return offsetOf(isPair(node) ? node.key : node);
}

/** Converts the tree of a YAML file to plain data and replaces its references; maps have no prototype. */
export function readPlainValue(root: Node | null, sources: ReferenceSources) {
  /** Settings whose value is not known, and why. */
  const problems: SettingProblem[] = [];
  const value = read(root, []);
  return { value, problems };

  function read(node: unknown, path: SettingPath): unknown {
    if (isMap(node)) {
      const map: Record<string, unknown> = Object.create(null);
      for (const { key, value } of node.items) {
        const name = String(isScalar(key) ? key.value : key);
        map[name] = read(value, [...path, name]);
      }
      return map;
    }
    if (isSeq(node)) return node.items.map((item, index) => read(item, [...path, index]));
    if (isAlias(node)) {
      problems.push({ path, text: 'must not be an alias; write the value out' });
      return undefined;
    }
    const scalar = isScalar(node) ? node.value : null;
    return typeof scalar === 'string' && scalar.includes('${') ? readReference(scalar, path) : scalar;
  }

  function readReference(scalar: string, path: SettingPath): unknown {
    const { text, isReference, problems: wrong } = substituteReferences(scalar, sources);
    for (const one of wrong) problems.push({ path, text: one });
    if (wrong.length > 0) return undefined;
    return isReference ? asSchemaWants(text, schemasAt(path)) : text;
  }
}

/** Converts the text of a reference to the type in the schema; commas separate the items of a list. */
function asSchemaWants(text: string, schemas: readonly JsonSchema[]): unknown {
  const types = schemas.map(({ type, const: only }) => type ?? typeof only);
  if (types.some((type) => type === 'integer' || type === 'number') && /^-?\d+(\.\d+)?$/.test(text)) {
    return Number(text);
  }
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true';
  if (types.includes('string') || !types.includes('array')) return text;
  const items = schemas.flatMap((schema): readonly JsonSchema[] =>
    schema.items === undefined ? [] : [schema.items],
  );
  const parts = text.split(',').map((part) => part.trim());
  return text.trim() === '' ? [] : parts.map((part) => asSchemaWants(part, items));
}

/** Where references are looked up. */
export interface ReferenceSources {
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Text of a file, or why it cannot be read. */
  readFile(path: string): { readonly text: string } | { readonly fault: string };
}

const reference = /\$(\$?)\{([^}]*)(\}?)/g;
const variable = /^([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/;

/**
 * Replaces `${VAR}`, `${VAR:-default}` (also when VAR is empty, as in a shell) and `${file:/path}` in a scalar; `$${` stands for
 * `${`. References in the values themselves are not replaced.
 */
export function substituteReferences(source: string, from: ReferenceSources) {
  /** What is wrong with its references; never their values. */
  const problems: string[] = [];
  /** The whole scalar was one reference: its text is converted to the type in the schema. */
  let isReference = false;
  const text = source.replace(reference, (whole: string, dollar: string, inner: string, close: string) => {
    if (dollar !== '') return whole.slice(1);
    isReference = whole.length === source.length;
    const found = close === '' ? 'has a reference without its closing brace' : lookUp(inner, from);
    if (typeof found !== 'string') return found.text;
    problems.push(found);
    return '';
  });
  return { text, isReference, problems };
}

function lookUp(inner: string, from: ReferenceSources): { text: string } | string {
  if (inner.startsWith('file:')) {
    const read = from.readFile(inner.slice('file:'.length));
    return 'fault' in read ? `names a file that cannot be read: ${read.fault}` : read;
  }
  const [, name, fallback] = variable.exec(inner) ?? [];
  if (name === undefined)
    return 'has a malformed reference: a variable, a variable with :-default, or file: and a path is meant';
  const value = Object.hasOwn(from.variables, name) ? from.variables[name] : undefined;
  if (fallback !== undefined) return { text: value === undefined || value === '' ? fallback : value };
  return value === undefined ? `needs the environment variable ${name}, which is not set` : { text: value };
}
