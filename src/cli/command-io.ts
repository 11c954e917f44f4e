import { readFileSync } from 'node:fs';

// Exit codes: 0 done, 1 found something, and these.
/** Arguments or options that mean nothing. */
export const badUsage = 2;
/** EX_TEMPFAIL of sysexits.h: an address is taken; unlike a bad configuration, starting again may mend it. */
export const notNow = 75;
/** EX_CONFIG of sysexits.h. */
export const badConfiguration = 78;

/** What most verbs take. */
export interface CommonChoice {
  /** Configuration file; left out: the default ones. */
  readonly config?: string;
  /** JSON instead of text. */
  readonly json?: boolean;
}

/** What a command sees of the world around it. */
export interface CommandIo {
  /** Its result, on standard output. */
  out(text: string): void;
  /** Why it could not be had, on standard error. */
  err(text: string): void;
  /** Standard input, where a verb reads it. Left out: there is none. */
  readonly input?: AsyncIterable<Uint8Array | string>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

export const processIo: CommandIo = {
  out: (text) => void process.stdout.write(`${escapeControls(text)}\n`),
  err: (text) => void process.stderr.write(`${escapeControls(text)}\n`),
  // Not opened before a verb reads it: a process that only serves has no business with it.
  get input() {
    return process.stdin;
  },
  env: process.env,
  cwd: process.cwd(),
};

/** Standard input as text; what comes beyond `mostBytes` is not read. */
export async function readInput({ input }: CommandIo, mostBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of input ?? []) {
    chunks.push(Buffer.from(chunk));
    bytes += chunk.length;
    if (bytes >= mostBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, mostBytes).toString('utf8');
}

/** Control characters but line feed and tab, line separators of Unicode, and what turns the direction of text. */
const controls = /[^\P{Cc}\n\t]|[\u2028\u2029\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;

/**
 * What a server, a document or a pasted request says may be printed, but not command the terminal. The escape is
 * `\u` and four digits, which JSON and quoted YAML read as the character that it stands for.
 */
function escapeControls(text: string): string {
  return text.replace(controls, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The same for a text that must stay on its line. */
export function escapeToLine(text: string): string {
  return escapeControls(text).replace(/[\n\t]/g, (one) => (one === '\n' ? '\\n' : '\\t'));
}

/** Rows as lines, in columns that are as wide as their widest cell; no spaces at the ends of lines. */
export function textTable(texts: readonly (readonly string[])[]): string[] {
  const rows = texts.map((row) => row.map(escapeToLine));
  const widths: number[] = [];
  for (const row of rows) {
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  }
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

const packageFile = new URL('../../package.json', import.meta.url);

/** Version of the package. */
export const version: string = JSON.parse(readFileSync(packageFile, 'utf8')).version;

/** Prints our version and the runtime's, as a report of a fault needs them. */
export async function runVersion(
  { json = false }: { readonly json?: boolean } = {},
  io: CommandIo = processIo,
): Promise<number> {
  const { version: node, platform, arch } = process;
  const text = `shopward ${version}\nnode ${node}\n${platform} ${arch}`;
  io.out(json ? JSON.stringify({ shopward: version, node, platform, arch }) : text);
  return 0;
}
