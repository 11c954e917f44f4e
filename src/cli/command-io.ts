import { readFileSync } from 'node:fs';
import { escapeUnit } from '../lib/text.ts';

// Exit codes besides 0 (done) and 1 (found something).
/** Wrong arguments or options. */
export const badUsage = 2;
/** EX_TEMPFAIL of sysexits.h: an address is in use; unlike after a bad configuration, another start may succeed. */
export const notNow = 75;
/** EX_CONFIG of sysexits.h. */
export const badConfiguration = 78;

/** Options that most verbs have. */
export interface CommonChoice {
  /** Configuration file. Default: `defaultConfigFiles`. */
  readonly config?: string;
  /** JSON instead of text. */
  readonly json?: boolean;
}

/** The environment of a command; tests pass their own. */
export interface CommandIo {
  /** Writes to standard output: results. */
  out(text: string): void;
  /** Writes to standard error: problems and notes. */
  err(text: string): void;
  /** Standard input, if there is any. */
  readonly input?: AsyncIterable<Uint8Array | string>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

export const processIo: CommandIo = {
  out: (text) => void process.stdout.write(`${escapeControls(text)}\n`),
  err: (text) => void process.stderr.write(`${escapeControls(text)}\n`),
  // A getter, so that standard input is opened only when a verb reads it.
  get input() {
    return process.stdin;
  },
  env: process.env,
  get cwd() {
    return process.cwd();
  },
};

/** Reads standard input as text; stops after `mostBytes`. */
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

/** Control characters except line feed and tab, Unicode's line separators, and direction marks. */
const controls = /[^\P{Cc}\n\t]|[\u2028\u2029\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;

/**
 * Escapes control characters, which could control the terminal: texts come from servers, documents and pasted requests. `\u`
 * and four digits: JSON and quoted YAML read this as the same character.
 */
function escapeControls(text: string): string {
  return text.replace(controls, escapeUnit);
}

/** Escapes line feeds and tabs as well, for a text that must stay on one line. */
export function escapeToLine(text: string): string {
  return escapeControls(text).replace(/[\n\t]/g, (one) => (one === '\n' ? '\\n' : '\\t'));
}

/** Formats rows as lines with aligned columns, without trailing spaces. */
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
