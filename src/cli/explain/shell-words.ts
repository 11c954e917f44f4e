/** Words that end a command in a shell. */
const operators = new Set(['|', '||', '&&', '&', ';', '>', '>>', '<', '2>', '2>&1', '2>/dev/null']);

/** Splits into words as a POSIX shell does: quotes, `$'…'`, backslashes, continued lines. In one pass. */
export function splitShell(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let at = 0;
  while (at < text.length) {
    const char = text.charAt(at);
    if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
      at += 1;
      continue;
    }
    if (word === undefined) {
      const end = text.slice(at, at + 12).search(/\s|$/);
      if (operators.has(text.slice(at, at + end))) return words;
    }
    word ??= '';
    if (char === "'") {
      const end = endOf(text, "'", at + 1);
      word += text.slice(at + 1, end);
      at = end + 1;
    } else if (char === '$' && text.charAt(at + 1) === "'") {
      const read = readEscaped(text, at + 2, "'", ansiEscape);
      word += read.value;
      at = read.end;
    } else if (char === '"') {
      const read = readEscaped(text, at + 1, '"', doubleQuoteEscape);
      word += read.value;
      at = read.end;
    } else if (char === '\\') {
      const length = /^\r?\n/.exec(text.slice(at + 1, at + 3))?.[0].length;
      if (length === undefined) word += text.charAt(at + 1);
      else if (word === '') word = undefined;
      at += 1 + (length ?? 1);
    } else {
      word += char;
      at += 1;
    }
  }
  if (word !== undefined) words.push(word);
  return words;
}

function endOf(text: string, sign: string, from: number): number {
  const end = text.indexOf(sign, from);
  return end === -1 ? text.length : end;
}

/** An escape: its value, and how many characters follow the backslash. */
type Escape = (text: string, at: number) => readonly [value: string, length: number];

/** Up to the closing quote, or to the end where there is none. */
function readEscaped(
  text: string,
  from: number,
  quote: string,
  readEscape: Escape,
): { value: string; end: number } {
  let value = '';
  let at = from;
  while (at < text.length && text.charAt(at) !== quote) {
    if (text.charAt(at) !== '\\') {
      value += text.charAt(at);
      at += 1;
      continue;
    }
    const [meant, length] = readEscape(text, at + 1);
    value += meant;
    at += 1 + length;
  }
  return { value, end: at + 1 };
}

const doubleQuoteEscape: Escape = (text, at) => {
  const next = text.charAt(at);
  if (next === '\n') return ['', 1];
  return '"\\$`'.includes(next) ? [next, 1] : [`\\${next}`, 1];
};

const ansiLetters: Readonly<Record<string, string>> = {
  ...{ n: '\n', r: '\r', t: '\t', a: '\x07', b: '\b', e: '\x1b', f: '\f', v: '\v' },
};

const ansiEscape: Escape = (text, at) => {
  const next = text.charAt(at);
  const digits = next === 'x' ? 2 : next === 'u' ? 4 : next === 'U' ? 8 : 0;
  const hex = digits === 0 ? undefined : /^[0-9a-f]+/i.exec(text.slice(at + 1, at + 1 + digits))?.[0];
  if (hex !== undefined) {
    const code = Number.parseInt(hex, 16);
    return [code > 0x10ffff ? '' : String.fromCodePoint(code), 1 + hex.length];
  }
  return [ansiLetters[next] ?? next, 1];
};

/** Splits into words as cmd does: first its carets, then the quotes of the C runtime. In one pass each. */
export function splitCmd(text: string): string[] {
  return splitRuntime(withoutCarets(text));
}

/** Removes carets, except in quotes. Browsers also escape quotes, which then do not count. */
function withoutCarets(text: string): string {
  let plain = '';
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '"') isQuoted = !isQuoted;
    if (char !== '^' || isQuoted) {
      plain += char;
      continue;
    }
    at += text.startsWith('\r\n', at + 1) ? 2 : 1;
    const escaped = text.charAt(at);
    // A continued line; an empty line after it stands for a line break in the value.
    if (escaped === '\n') plain += /^\r?\n/.test(text.slice(at + 1, at + 3)) ? '' : ' ';
    else plain += escaped;
  }
  return plain;
}

function splitRuntime(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let isQuoted = false;
  let slashes = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === '\\') {
      slashes += 1;
      continue;
    }
    if (slashes > 0) word = (word ?? '') + '\\'.repeat(char === '"' ? slashes >> 1 : slashes);
    const isLiteral = slashes % 2 === 1;
    slashes = 0;
    if (char === '"' && !isLiteral) {
      isQuoted = !isQuoted;
      word ??= '';
    } else if (!isQuoted && /\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? '') + char;
  }
  if (slashes > 0) word = (word ?? '') + '\\'.repeat(slashes);
  if (word !== undefined) words.push(word);
  return words;
}
