/**
 * The notation of the corpus, in which every octet can be written:
 *
 * - `\r`, `\n`, `\t`, `\\`, `\xHH`: one octet;
 * - `${name}`: a value of the case (`token`, `tag`, `cart`, or of its own `over` and `rows`);
 * - `${4096 * ab}`: the text `ab`, 4096 times.
 *
 * Values are notation too, and are expanded. Characters are octets (latin-1).
 */
export function expand(notation: string, values: Values): string {
  return notation.replace(token, (found, escaped: string | undefined, inner: string | undefined) => {
    if (escaped !== undefined) return octetOf(found, escaped);
    const name = inner ?? '';
    const [, times, text = ''] = repeated.exec(name) ?? [];
    if (times !== undefined) return expand(text, values).repeat(Number(times));
    const value = values[name];
    if (value === undefined) throw new Error(`the corpus names no ${found}`);
    return typeof value === 'function' ? value() : expand(value, values);
  });
}

/** A function returns octets, which are not expanded. */
export type Values = Readonly<Record<string, string | (() => string) | undefined>>;

/** Names that a notation uses, including those in its values. */
export function namesIn(notation: string, values: Values = {}): string[] {
  return [...notation.matchAll(token)].flatMap(([, , name]) => {
    const value = name === undefined ? undefined : values[name];
    return name === undefined ? [] : [name, ...(typeof value === 'string' ? namesIn(value, values) : [])];
  });
}

const token = /\\(x[0-9a-fA-F]{2}|[\s\S])|\$\{([^{}]+)\}/g;
const repeated = /^(\d+) \* (.*)$/s;
const escapes: Readonly<Record<string, string>> = { r: '\r', n: '\n', t: '\t', '\\': '\\' };

function octetOf(found: string, escaped: string): string {
  if (escaped.length === 3) return String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
  const octet = escapes[escaped];
  if (octet === undefined) throw new Error(`the corpus knows no escape ${found}`);
  return octet;
}
