import { isAlias, isMap, isScalar, isSeq, type Node } from 'yaml';
import { type JsonSchema, schemasAt } from './json-schema.ts';
import type { SettingPath } from './source-document.ts';
import { type ReferenceSources, substituteReferences } from './substitute.ts';

export interface PlainValue {
  /** Plain data with references replaced; maps have no prototype. */
  readonly value: unknown;
  /** Settings whose value is not known, and why. */
  readonly problems: readonly { readonly path: SettingPath; readonly text: string }[];
}

/** Turns the tree of a YAML file into plain data and replaces its references. */
export function readPlainValue(root: Node | null, sources: ReferenceSources): PlainValue {
  const problems: { path: SettingPath; text: string }[] = [];
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

/** A text from outside as the type that the schema wants at its place; a list is separated by commas. */
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
