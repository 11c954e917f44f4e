import type { FieldList } from '../http/field-list.ts';
import { hopByHopNames } from '../http/field-list.ts';

/** What frames a message or belongs to one connection; an engine sets its own, whatever a request carries. */
const framing = new Set([...hopByHopNames, 'content-length', 'expect']);

const framingLengths = new Set([...framing].map((name) => name.length));

/** Whatever its case; the length tells most other fields apart before a letter is folded. */
export function isFramingField(name: string): boolean {
  return framingLengths.has(name.length) && framing.has(name.toLowerCase());
}

/** Fields as the object form that `http.request` takes: repeats as an array, under the first line's spelling. */
export function fieldsToObject(fields: FieldList): Record<string, string | string[]> {
  // No prototype: `__proto__` is a field name like any other.
  const byName: Record<string, string | string[]> = Object.create(null);
  const spelling: Record<string, string> = Object.create(null);
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] as string;
    const value = fields[i + 1] as string;
    const lower = name.toLowerCase();
    if (framing.has(lower)) continue;
    const spelt = spelling[lower];
    if (spelt === undefined) {
      spelling[lower] = name;
      byName[name] = value;
      continue;
    }
    const before = byName[spelt] as string | string[];
    byName[spelt] = typeof before === 'string' ? [before, value] : [...before, value];
  }
  return byName;
}
