import { readFileSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bytes, Milliseconds } from './units.ts';

/** Text of a file, or words that say why it cannot be had. */
export type FileText = { readonly text: string } | { readonly fault: string };
export type FileBytes = { readonly bytes: Buffer } | { readonly fault: string };

interface ReadOptions {
  readonly maxBytes: Bytes;
  /** Pause between two reads that must agree. */
  readonly settleMs?: Milliseconds;
}

const defaultSettleMs = 20;
const mostReads = 50;

/** Reads a file until two reads agree, so that a writer that is in the middle of it is waited for. Never throws. */
export async function readSettledFile(path: string, options: ReadOptions): Promise<FileBytes> {
  const { maxBytes, settleMs = defaultSettleMs } = options;
  let last = await readOnce(path, maxBytes);
  for (let reads = 1; reads < mostReads; reads++) {
    await sleep(settleMs);
    const next = await readOnce(path, maxBytes);
    if (isSame(last, next)) return next;
    last = next;
  }
  return { fault: 'it keeps changing' };
}

export function isSame(a: FileBytes, b: FileBytes): boolean {
  if ('bytes' in a && 'bytes' in b) return a.bytes.equals(b.bytes);
  return 'fault' in a && 'fault' in b && a.fault === b.fault;
}

/** One look at a file. Never throws. */
export async function readOnce(path: string, maxBytes: Bytes): Promise<FileBytes> {
  try {
    const file = await open(path, 'r');
    try {
      const stat = await file.stat();
      if (!stat.isFile()) return { fault: 'it is not a regular file' };
      if (stat.size > maxBytes) return { fault: `it is larger than ${maxBytes} bytes` };
      const bytes = await file.readFile();
      return bytes.length > maxBytes ? { fault: `it is larger than ${maxBytes} bytes` } : { bytes };
    } finally {
      await file.close();
    }
  } catch (cause) {
    return { fault: faultText(cause) };
  }
}

/** Whether a file is there and may be read, whatever its size. */
export async function checkReadable(path: string): Promise<string | undefined> {
  try {
    const file = await open(path, 'r');
    const isFile = await file
      .stat()
      .then((stat) => stat.isFile())
      .finally(() => file.close());
    return isFile ? undefined : 'it is not a regular file';
  } catch (cause) {
    return faultText(cause);
  }
}

/** Bytes that change whenever the file does, without reading it. Never throws. */
export async function readStamp(path: string): Promise<FileBytes> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return { bytes: Buffer.from([dev, ino, size, mtimeNs, ctimeNs].join(' ')) };
  } catch (cause) {
    return { fault: faultText(cause) };
  }
}

const secretMaxBytes = 64 * 1024;

/** A secret that a platform mounts as a file; one line end at its end is not part of it. */
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

export function decodeText(bytes: Uint8Array): FileText {
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
