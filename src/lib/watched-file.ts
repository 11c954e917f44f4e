import { constants, readFileSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { isolateLate } from './faults.ts';

export interface WatchOptions {
  /** Milliseconds between two readings. Default: 1000. Only tests set it. */
  readonly pollMs?: number;
  /** Milliseconds between two readings that must agree before a change is reported. Default: 100. */
  readonly stableMs?: number;
  /** Reads the file. Default: its content, up to 16 MiB; `readStamp` for a mapping file of millions of rows. */
  readonly read?: (path: string) => Promise<FileBytes>;
  /** The content in effect; a file that differs from it is reported at once. Default: what the first reading finds. */
  readonly known?: Buffer;
}

const readContent = (path: string) => readOnce(path, 16 * 1024 * 1024);

/**
 * Reports the new content of a file, or why it cannot be read, after every change. The file may be replaced by a rename,
 * overwritten, deleted and created, or a symlink in its path may be swapped (`..data` of a ConfigMap). It is read every
 * `pollMs`: bind mounts and network file systems send no events.
 * A change is reported after `onChange` of the previous one has ended. Several changes meanwhile are reported as one; the last
 * content is always reported. If the content changes at 50 readings in a row (5 s), the file is reported as unreadable until
 * it stays the same. `onChange` must not throw or reject.
 */
export class FileWatch {
  readonly #path: string;
  readonly #onChange: (content: FileBytes) => unknown;
  readonly #read: (path: string) => Promise<FileBytes>;
  readonly #stableMs: number;
  readonly #timer: NodeJS.Timeout;
  #known: FileBytes | undefined;
  #isChecking = false;
  #isClosed = false;

  constructor(path: string, onChange: (content: FileBytes) => unknown, options: WatchOptions = {}) {
    const { pollMs = 1000, stableMs = 100, read = readContent, known } = options;
    this.#path = path;
    this.#onChange = onChange;
    this.#read = read;
    this.#stableMs = stableMs;
    this.#known = known && { bytes: known };
    this.#timer = setInterval(() => this.reload(), pollMs).unref();
    this.reload();
  }

  /** Checks now (SIGHUP). If a check is already running, the next one follows within `pollMs`. */
  reload(): void {
    isolateLate(this.#check());
  }

  /** Stops: no change is reported from now on. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    try {
      await this.#compare();
    } finally {
      this.#isChecking = false;
    }
  }

  async #compare(): Promise<void> {
    let seen = await this.#read(this.#path);
    for (let reads = 1; !this.#isClosed && this.#known !== undefined; reads++) {
      if (isSame(seen, this.#known)) return;
      await sleep(this.#stableMs, undefined, { ref: false });
      const next = await this.#read(this.#path);
      if (isSame(next, seen)) return this.#report(seen);
      // A file that is rewritten all the time may mix two contents, and neither is safe to use.
      if (reads >= maxReads) return this.#report(changing);
      seen = next;
    }
    this.#known ??= seen;
  }

  async #report(content: FileBytes): Promise<void> {
    if (this.#known !== undefined && isSame(content, this.#known)) return;
    this.#known = content;
    if (!this.#isClosed) await this.#onChange(content);
  }
}

/** The content of a file, or why it cannot be read, for people. */
export type FileBytes = { readonly bytes: Buffer } | { readonly fault: string };

/** After this many different readings in a row a file is reported as changing all the time. */
const maxReads = 50;
const changing: FileBytes = { fault: 'it keeps changing' };

/** Reads a file until two readings agree, so that a half-written file is not taken for a whole one. Never throws. */
export async function readStableFile(path: string, maxBytes: number, stableMs = 20): Promise<FileBytes> {
  let last = await readOnce(path, maxBytes);
  for (let reads = 1; reads < maxReads; reads++) {
    await sleep(stableMs);
    const next = await readOnce(path, maxBytes);
    if (isSame(last, next)) return next;
    last = next;
  }
  return changing;
}

function isSame(a: FileBytes, b: FileBytes): boolean {
  if ('bytes' in a && 'bytes' in b) return a.bytes.equals(b.bytes);
  return 'fault' in a && 'fault' in b && a.fault === b.fault;
}

/** Non-blocking: opening a named pipe would otherwise wait, perhaps for ever, for a writer. */
const forReading = constants.O_RDONLY | constants.O_NONBLOCK;
const irregular = 'it is not a regular file';

/** Reads a file once. Never throws. */
export async function readOnce(path: string, maxBytes: number): Promise<FileBytes> {
  try {
    await using file = await open(path, forReading);
    const stat = await file.stat();
    if (!stat.isFile()) return { fault: irregular };
    const bytes = stat.size > maxBytes ? undefined : await file.readFile();
    return bytes === undefined || bytes.length > maxBytes
      ? { fault: `it is larger than ${maxBytes} bytes` }
      : { bytes };
  } catch (cause) {
    return { fault: faultText(cause) };
  }
}

/** Why a file cannot be read, regardless of its size; undefined: it can. Never throws. */
export async function checkReadable(path: string): Promise<string | undefined> {
  try {
    await using file = await open(path, forReading);
    return (await file.stat()).isFile() ? undefined : irregular;
  } catch (cause) {
    return faultText(cause);
  }
}

/** Bytes that change whenever the file does, made from its metadata without reading the content. Never throws. */
export async function readStamp(path: string): Promise<FileBytes> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return { bytes: Buffer.from([dev, ino, size, mtimeNs, ctimeNs].join(' ')) };
  } catch (cause) {
    return { fault: faultText(cause) };
  }
}

const secretMaxBytes = 64 * 1024;

/** Reads a secret from a file; one line break at its end is not part of it. Never throws. */
export function readSecret(
  path: string,
): { readonly text: string; readonly bytes: Buffer } | { readonly fault: string } {
  try {
    const bytes = readFileSync(path);
    if (bytes.length > secretMaxBytes) return { fault: `it is larger than ${secretMaxBytes} bytes` };
    const decoded = decodeText(bytes);
    return 'fault' in decoded ? decoded : { text: decoded.text.replace(/\r?\n$/, ''), bytes };
  } catch (cause) {
    return { fault: faultText(cause) };
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

export function decodeText(bytes: Uint8Array): { readonly text: string } | { readonly fault: string } {
  try {
    return { text: utf8.decode(bytes) };
  } catch {
    return { fault: 'it is not UTF-8' };
  }
}

const faultTexts: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'its symbolic links go round in a circle',
};

function faultText(cause: unknown): string {
  const code = (cause as NodeJS.ErrnoException | null)?.code;
  return faultTexts[code ?? ''] ?? `it cannot be read (${code ?? 'unknown fault'})`;
}
