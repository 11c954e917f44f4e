/**
 * Field lines in the order of the wire, flat: name, value, name, value … (the form of `rawHeaders`, and what the client
 * of the upstream takes and gives), so that repeated fields, their order and their spelling survive.
 */
export type FieldList = readonly string[];

/** All values of a field, in order; names compare case-insensitively. `name` must be lower case. */
export function fieldValues(fields: FieldList, name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i < fields.length; i += 2) {
    if (isNamed(fields[i] as string, name)) values.push(fields[i + 1] as string);
  }
  return values;
}

/** The first value of a field, or undefined. `name` must be lower case. */
export function fieldValue(fields: FieldList, name: string): string | undefined {
  for (let i = 0; i < fields.length; i += 2) {
    if (isNamed(fields[i] as string, name)) return fields[i + 1];
  }
  return undefined;
}

/** Replaces all lines of each named field; `null` only removes them. Names of `edits` match in any case. */
export function editFields(fields: FieldList, edits: FieldEdits): string[] {
  const written = Object.keys(edits);
  const names = written.map((name) => name.toLowerCase());
  const edited: string[] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    if (!isOneOf(name, names)) edited.push(name, fields[i + 1] as string);
  }
  for (const name of written) {
    const value = edits[name];
    if (typeof value === 'string') edited.push(name, value);
  }
  return edited;
}

/** The fields with one `Vary`, which also names `field`: some caches read its first line only. */
export function varyingBy(fields: FieldList, field: string): string[] {
  const vary = fieldValues(fields, 'vary').join(', ');
  const names = vary.toLowerCase().split(',').map(trimOws);
  const isThere = names.includes(field.toLowerCase()) || names.includes('*');
  const value = vary === '' ? field : `${vary}, ${field}`;
  return editFields(fields, { Vary: isThere ? vary : value });
}

/** `fields` and `more`, whose `Vary` joins that of `fields`. */
export function joinFields(fields: FieldList, more: FieldList): string[] {
  const vary = fieldValue(more, 'vary');
  if (vary === undefined) return [...fields, ...more];
  return varyingBy([...fields, ...editFields(more, { Vary: null })], vary);
}

/** There are few edits, and lengths tell most names apart. */
function isOneOf(sent: string, names: readonly string[]): boolean {
  for (let i = 0; i < names.length; i += 1) if (isNamed(sent, names[i] as string)) return true;
  return false;
}

export type FieldEdits = Readonly<Record<string, string | null>>;

/** Whether a field is the one of this name, which must be lower case. */
export function isNamed(sent: string, name: string): boolean {
  return sent.length === name.length && (sent === name || sent.toLowerCase() === name);
}

/** Fields that belong to one connection (RFC 9110 section 7.6.1, and what old peers send); lower case. */
export const hopByHopNames: readonly string[] = (
  'connection http2-settings keep-alive proxy-authenticate proxy-authentication-info proxy-authorization ' +
  'proxy-connection te trailer transfer-encoding upgrade'
).split(' ');

/** Names of the connection options in one value of `Connection`, in lower case; empty for the common values. */
export function readNominations(value: string): readonly string[] {
  if (value === 'keep-alive' || value === 'close') return none;
  return value
    .toLowerCase()
    .split(',')
    .map((option) => option.trim())
    .filter((option) => option !== '' && option !== 'keep-alive' && option !== 'close');
}

const none: readonly string[] = [];

/**
 * Whether a nomination would remove a field that decides something here or at the upstream. Such a request is refused,
 * not repaired. `name` is in lower case.
 */
export function isNeverHopByHop(name: string): boolean {
  return neverHopByHop.has(name) || /^(?:content-|if-|accept)/.test(name);
}

const neverHopByHop = new Set('authorization cookie expect host origin range transfer-encoding'.split(' '));

/**
 * The text without OWS (spaces and tabs) at either end (RFC 9110 section 5.6.3). In linear time: `/[ \t]+$/` looks for an end
 * after every space of a run, so 60 KB of spaces before one letter would stop the process for seconds. `String#trim` also
 * drops U+00A0 and others, which no peer does.
 */
export function trimOws(text: string): string {
  return trimWhile(text, isOws);
}

/** RFC 9110 section 5.6.3. */
export function isOws(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** The text without the characters at either end for whose codes `isDropped` is true. */
export function trimWhile(text: string, isDropped: (code: number) => boolean): string {
  let start = 0;
  while (start < text.length && isDropped(text.charCodeAt(start))) start += 1;
  const end = endWithout(text, start, isDropped);
  return start === 0 && end === text.length ? text : text.slice(start, end);
}

/** As `trimWhile`, but only at the end. */
export function trimEndWhile(text: string, isDropped: (code: number) => boolean): string {
  const end = endWithout(text, 0, isDropped);
  return end === text.length ? text : text.slice(0, end);
}

function endWithout(text: string, start: number, isDropped: (code: number) => boolean): number {
  let end = text.length;
  while (end > start && isDropped(text.charCodeAt(end - 1))) end -= 1;
  return end;
}
