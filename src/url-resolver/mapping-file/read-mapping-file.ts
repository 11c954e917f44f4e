import { createHash } from 'node:crypto';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { extname } from 'node:path';
import { contractEntityTypes } from '../envelope.ts';
import { readCsv } from './csv.ts';
import { readDocument } from './document-rows.ts';
import { type PlacedProblem, ProblemList } from './row-validation.ts';
import type { TableData } from './table.ts';

export type FileReading =
  | { readonly kind: 'table'; readonly data: TableData }
  | { readonly kind: 'problems'; readonly problems: readonly PlacedProblem[] };

const maxDocumentBytes = 10 * 1024 * 1024;
const attempts = 20;

/**
 * Reads a mapping file, blocking the thread. It is accepted once two readings, `settle` apart, agree in inode, size, modification
 * time and content, so that a half-written file is not taken for a whole one.
 */
export async function readMappingFile(
  path: string,
  settle: () => Promise<unknown>,
  entityTypes: readonly string[] = contractEntityTypes,
): Promise<FileReading> {
  try {
    let before = passOver(path, digestOnly).identity;
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      await settle();
      const { identity, result } = passOver(path, formatOf(path, entityTypes));
      if (identity === before) return result;
      before = identity;
    }
    return refuse('the file keeps changing');
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    if (code === undefined) throw cause;
    return refuse(`cannot be read: ${code}`);
  }
}

type Pass<T> = (read: (into: Uint8Array) => number, size: number) => T;

/** Runs `pass` over the content; `identity` identifies what it has read. */
function passOver<T>(path: string, pass: Pass<T>): { readonly identity: string; readonly result: T } {
  const descriptor = openSync(path, 'r');
  try {
    const digest = createHash('sha1');
    const { ino, size, mtimeNs } = fstatSync(descriptor, { bigint: true });
    const read = (into: Uint8Array) => {
      const count = readSync(descriptor, into, 0, into.length, null);
      digest.update(into.subarray(0, count));
      return count;
    };
    const result = pass(read, Number(size));
    return { identity: `${ino} ${size} ${mtimeNs} ${digest.digest('hex')}`, result };
  } finally {
    closeSync(descriptor);
  }
}

const digestOnly: Pass<void> = (read) => {
  const chunk = Buffer.alloc(1024 * 1024);
  while (read(chunk) > 0);
};

function formatOf(path: string, entityTypes: readonly string[]): Pass<FileReading> {
  switch (extname(path).toLowerCase()) {
    case '.csv':
      return (read, size) => {
        const problems = new ProblemList();
        return readingOf(readCsv(read, size, problems, entityTypes), problems, read);
      };
    case '.json':
      return readText('json', entityTypes);
    case '.yaml':
    case '.yml':
      return readText('yaml', entityTypes);
    default:
      return (read) => {
        digestOnly(read, 0);
        return refuse('a mapping file is called *.csv, *.json, *.yaml or *.yml');
      };
  }
}

function readText(format: 'json' | 'yaml', entityTypes: readonly string[]): Pass<FileReading> {
  return (read, size) => {
    if (size > maxDocumentBytes) {
      digestOnly(read, 0);
      return refuse('larger than 10 MB: use CSV, which is read piece by piece');
    }
    const bytes = Buffer.alloc(size + 1);
    let length = 0;
    for (let count = -1; count !== 0 && length < bytes.length; length += count) {
      count = read(bytes.subarray(length));
    }
    const problems = new ProblemList();
    try {
      const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, length));
      return readingOf(readDocument(text, format, problems, entityTypes), problems, read);
    } catch (cause) {
      return refuse(cause instanceof TypeError ? 'not UTF-8' : String(cause));
    }
  };
}

function readingOf(
  data: TableData | undefined,
  problems: ProblemList,
  read: (into: Uint8Array) => number,
): FileReading {
  // What the reader left unread is part of the identity, too.
  digestOnly(read, 0);
  return data === undefined ? { kind: 'problems', problems: problems.list() } : { kind: 'table', data };
}

function refuse(text: string): FileReading {
  return { kind: 'problems', problems: [{ line: 1, column: 1, severity: 'error', text }] };
}
