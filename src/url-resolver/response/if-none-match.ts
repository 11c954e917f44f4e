const entityTags = /\s*(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")\s*(?:,|$)/y;

/**
 * Whether `If-None-Match` names `tag` (RFC 9110 section 13.1.2: weak comparison, list or `*`). A field that is no list of
 * entity tags names nothing: the answer is then whole.
 */
export function namesTag(field: string, tag: string): boolean {
  if (field === tag) return true;
  if (field.trim() === '*') return true;
  entityTags.lastIndex = 0;
  let isNamed = false;
  while (entityTags.lastIndex < field.length) {
    const member = entityTags.exec(field);
    if (member === null) return false;
    if (member[1] === tag) isNamed = true;
  }
  return isNamed;
}
