/**
 * Field lines in the order of the wire, flat: name, value, name, value … (the form of `rawHeaders`, and what both
 * engines take and give), so that repeated fields, their order and their spelling survive.
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

/** Replaces all lines of each named field; `null` only removes them. Names of `edits` are lower case or as sent. */
export function editFields(fields: FieldList, edits: FieldEdits): string[] {
  const written = Object.keys(edits);
  const names = written.map(inLowerCase);
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

/** Edits are few, and the length tells most fields apart. */
function isOneOf(sent: string, names: readonly string[]): boolean {
  for (let i = 0; i < names.length; i += 1) if (isNamed(sent, names[i] as string)) return true;
  return false;
}

function inLowerCase(name: string): string {
  return name.toLowerCase();
}

/** Field name -> its one new value, or `null` to remove the field. */
export type FieldEdits = Readonly<Record<string, string | null>>;

/** Whether a field is the one of this name, which must be lower case. */
export function isNamed(sent: string, name: string): boolean {
  return sent.length === name.length && (sent === name || sent.toLowerCase() === name);
}
