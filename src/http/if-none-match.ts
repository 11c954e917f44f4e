import { type FieldList, fieldValues } from './field-list.ts';

/** One element of the list, whatever commas stand before it; cannot backtrack. */
const element = /[\t ,]*(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")[\t ]*(?=,|$)/y;

/** `namesTag` for the lines of a request. */
export function isNoneMatchMet(fields: FieldList, tag: string): boolean {
  const lines = fieldValues(fields, 'if-none-match');
  return lines.length > 0 && namesTag(lines.join(','), tag);
}

/**
 * Whether the value of `If-None-Match` names `tag` (with its quotes): weak comparison, lists, `*` (RFC 9110 section
 * 13.1.2). A field that is no list of entity tags names nothing: the answer is then whole.
 */
export function namesTag(list: string, tag: string): boolean {
  if (list === tag || list.trim() === '*') return true;
  const opaque = tag.startsWith('W/') ? tag.slice(2) : tag;
  let isNamed = false;
  for (let at = 0; at < list.length; at = element.lastIndex) {
    element.lastIndex = at;
    const match = element.exec(list);
    // Only commas and spaces may stand behind the last element.
    if (match === null) return isNamed && /^[\t ,]*$/.test(list.slice(at));
    if (match[1] === opaque) isNamed = true;
  }
  return isNamed;
}
