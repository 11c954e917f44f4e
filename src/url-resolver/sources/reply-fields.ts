import { type FieldList, fieldValue, fieldValues } from '../../http/field-list.ts';

/** JSON as it is, without a content coding. */
export function isPlainJson(fields: FieldList): boolean {
  const type = fieldValue(fields, 'content-type') ?? '';
  const coding = fieldValue(fields, 'content-encoding') ?? 'identity';
  return (
    /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type.trim()) && coding.toLowerCase() === 'identity'
  );
}

/** Whether somebody meant a response not to be kept by anybody: `no-store`, or a cookie that comes with it. */
export function forbidsToKeep(fields: FieldList): boolean {
  return hasDirective(fields, 'no-store') || fieldValue(fields, 'set-cookie') !== undefined;
}

/** Whether `Cache-Control` has a directive, in lower case, with or without an argument (RFC 9111 section 5.2). */
export function hasDirective(fields: FieldList, directive: string): boolean {
  return fieldValues(fields, 'cache-control')
    .join(',')
    .toLowerCase()
    .split(',')
    .some((part) => part.split('=', 1)[0]?.trim() === directive);
}
