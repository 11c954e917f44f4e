import { randomUUID } from 'node:crypto';
import { createReadStream, lstatSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';

/** Whether the path exists; a link counts even if its target is missing. */
export function isThere(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
}

/**
 * Replaces the whole file, so that a process that watches it sees the old text or the new one. A link is replaced, not
 * followed: in a folder that others can write to, it could lead anywhere.
 *
 * @throws {Error} if the path is a folder, a device or a pipe, or cannot be written.
 */
export async function replaceFile(file: string, text: string): Promise<void> {
  const present = lstatSync(file, { throwIfNoEntry: false });
  if (present !== undefined && !present.isFile() && !present.isSymbolicLink())
    throw new Error(`${file} is not a file`);
  const fresh = `${file}.${randomUUID()}`;
  try {
    await writeFile(fresh, text, { flag: 'wx' });
    await rename(fresh, file);
  } catch (cause) {
    await rm(fresh, { force: true });
    // The message about a full disk names no file.
    if (cause instanceof Error) cause.message += ` (${file})`;
    throw cause;
  }
}

/** Reads a file or a pipe, at most one byte more than `maxBytes`, so that an endless device cannot fill the memory. */
export function readBounded(file: string, maxBytes: number): Promise<Buffer> {
  return buffer(createReadStream(file, { end: maxBytes }));
}
