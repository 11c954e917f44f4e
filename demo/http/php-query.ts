/** Parameters as PHP reads them: names are mangled, the last value of a name wins, `a[]=1` is a list. */
export type PhpParameters = {
  readonly values: ReadonlyMap<string, string>;
  /** Elements of lists by their full name, such as `page[limit]`. */
  readonly items: ReadonlyMap<string, string>;
  readonly lists: ReadonlySet<string>;
};

export function readParameters(encoded: string): PhpParameters {
  return collect(
    encoded
      .split('&')
      .filter((part) => part !== '')
      .map(splitPart),
  );
}

/** For fields of a form that somebody else has decoded. */
export function collect(parts: readonly (readonly [string, string])[]): PhpParameters {
  const values = new Map<string, string>();
  const items = new Map<string, string>();
  const lists = new Set<string>();
  for (const [rawName, value] of parts) {
    const { name, isList } = mangleName(rawName);
    if (name === '') continue;
    if (isList) {
      lists.add(name);
      values.delete(name);
      items.set(rawName.trimStart(), value);
    } else {
      lists.delete(name);
      values.set(name, value);
    }
  }
  return { values, items, lists };
}

function splitPart(part: string): [string, string] {
  const at = part.indexOf('=');
  return at < 0 ? [phpDecode(part), ''] : [phpDecode(part.slice(0, at)), phpDecode(part.slice(at + 1))];
}

/** Leading spaces go, a NUL ends the name, dots and spaces become `_`. */
function mangleName(raw: string): { name: string; isList: boolean } {
  const cut = raw.replace(/^ +/, '').split('\0', 1)[0] ?? '';
  const bracket = cut.indexOf('[');
  const isList = bracket > 0;
  const name = (isList ? cut.slice(0, bracket) : cut).replace(/[. ]/g, '_');
  return { name, isList };
}

/** `urldecode`: `+` is a space, and a `%` that starts no escape stays. */
export function phpDecode(text: string): string {
  return rawPhpDecode(text.replace(/\+/g, ' '));
}

/** `rawurldecode`. */
export function rawPhpDecode(text: string): string {
  const bytes = Buffer.from(text, 'utf8').toString('latin1');
  const decoded = bytes.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(decoded, 'latin1').toString('utf8');
}
