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
  const names = new Set(Object.keys(edits).map((name) => name.toLowerCase()));
  const edited: string[] = [];
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    if (!names.has(name.toLowerCase())) edited.push(name, fields[i + 1] as string);
  }
  for (const [name, value] of Object.entries(edits)) {
    if (value !== null) edited.push(name, value);
  }
  return edited;
}

/** Field name -> its one new value, or `null` to remove the field. */
export type FieldEdits = Readonly<Record<string, string | null>>;

/** Whether a field is the one of this name, which must be lower case. */
export function isNamed(sent: string, name: string): boolean {
  return sent.length === name.length && (sent === name || sent.toLowerCase() === name);
}
