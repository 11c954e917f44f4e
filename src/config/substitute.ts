/** Where references are looked up. */
export interface ReferenceSources {
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Text of a file, or why it cannot be had. */
  readFile(path: string): { readonly text: string } | { readonly fault: string };
}

export interface Substituted {
  readonly text: string;
  /** The whole scalar was one reference: its text takes the type that the schema wants. */
  readonly isReference: boolean;
  /** What is wrong with its references; never their values. */
  readonly problems: readonly string[];
}

const reference = /\$(\$?)\{([^}]*)(\}?)/g;
const variable = /^([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/;

/**
 * Replaces `${VAR}`, `${VAR:-default}` (also when VAR is empty, as in a shell) and `${file:/path}` in one scalar;
 * `$${` stands for `${`. What was put in is not looked at again.
 */
export function substituteReferences(source: string, from: ReferenceSources): Substituted {
  const problems: string[] = [];
  let isReference = false;
  const text = source.replace(reference, (whole: string, dollar: string, inner: string, close: string) => {
    if (dollar !== '') return whole.slice(1);
    isReference = whole.length === source.length;
    const found = close === '' ? 'has a reference without its closing brace' : lookUp(inner, from);
    if (typeof found !== 'string') return found.text;
    problems.push(found);
    return '';
  });
  return { text, isReference, problems };
}

function lookUp(inner: string, from: ReferenceSources): { text: string } | string {
  if (inner.startsWith('file:')) {
    const read = from.readFile(inner.slice('file:'.length));
    return 'fault' in read ? `names a file that cannot be read: ${read.fault}` : read;
  }
  const [, name, fallback] = variable.exec(inner) ?? [];
  if (name === undefined)
    return 'has a malformed reference: a variable, a variable with :-default, or file: and a path is meant';
  const value = Object.hasOwn(from.variables, name) ? from.variables[name] : undefined;
  if (fallback !== undefined) return { text: value === undefined || value === '' ? fallback : value };
  return value === undefined ? `needs the environment variable ${name}, which is not set` : { text: value };
}
