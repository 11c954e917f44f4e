import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  checkReadable,
  type FileBytes,
  FileWatch,
  readOnce,
  readSecret,
  readStableFile,
} from '../../../src/lib/watched-file.ts';
import { makeFolder } from '../config/config-folder.ts';

const mib = 1024 * 1024;

function makeFile(content: string | Uint8Array): string {
  return path.join(makeFolder({ file: content }), 'file');
}

/** Number of octets read, or the reason of the failure. */
function outcome(read: FileBytes): number | string {
  return 'bytes' in read ? read.bytes.length : read.fault;
}

describe('how large a file may be', () => {
  it.each([
    ['ten octets where ten are allowed', 10, 10],
    ['eleven octets where ten are allowed', 11, 'it is larger than 10 bytes'],
    ['no octets', 0, 0],
  ])('%s', async (_, bytes, found) => {
    const file = makeFile(Buffer.alloc(bytes));
    expect(outcome(await readOnce(file, 10))).toBe(found);
    expect(outcome(await readStableFile(file, 10, 1))).toBe(found);
  });

  it.runIf(existsSync('/proc/version'))('a file longer than its stated size: its octets count', async () => {
    expect(outcome(await readOnce('/proc/version', 10))).toBe('it is larger than 10 bytes');
    expect(outcome(await readOnce('/proc/version', 100_000))).toBeGreaterThan(10);
  });

  it('a watched file: at most 16 MiB', async () => {
    const file = makeFile('');
    const told = Promise.withResolvers<FileBytes>();
    const later = Promise.withResolvers<FileBytes>();
    const seen = [told, later];
    truncateSync(file, 16 * mib);
    const watch = new FileWatch(file, (content) => seen.shift()?.resolve(content), {
      stableMs: 1,
      pollMs: 5,
      known: Buffer.from('old'),
    });
    onTestFinished(() => watch.close());
    expect(outcome(await told.promise)).toBe(16 * mib);
    truncateSync(file, 16 * mib + 1);
    expect(outcome(await later.promise)).toBe(`it is larger than ${16 * mib} bytes`);
  });

  it.each([
    [64 * 1024, undefined],
    [64 * 1024 + 1, 'it is larger than 65536 bytes'],
  ])('a secret: at most 64 KiB (%i octets)', (bytes, fault) => {
    const read = readSecret(makeFile(Buffer.alloc(bytes, 'a')));
    expect('fault' in read ? read.fault : undefined).toBe(fault);
  });
});

it.each([
  ['s3cret\n', 's3cret'],
  ['s3cret\r\n', 's3cret'],
  ['s3cret\n\n', 's3cret\n'],
  [' s3cret ', ' s3cret '],
])('of the secret %j at most one line end is removed', (content, text) => {
  expect(readSecret(makeFile(content))).toEqual({ text, bytes: Buffer.from(content) });
});

it('a secret is UTF-8', () => {
  expect(readSecret(makeFile(Uint8Array.of(0xff)))).toEqual({ fault: 'it is not UTF-8' });
});

describe('paths of a file and of other things', () => {
  const folder = () => makeFolder({ file: 'x' });
  it.each<[string, (at: string) => string, string | undefined]>([
    ['a file', (at) => path.join(at, 'file'), undefined],
    ['nothing', (at) => path.join(at, 'none'), 'there is no such file'],
    ['below a file', (at) => path.join(at, 'file/below'), 'there is no such file'],
    ['a folder', (at) => at, 'it is not a regular file'],
    [
      'a pipe without a writer',
      (at) => {
        execFileSync('mkfifo', [path.join(at, 'pipe')]);
        return path.join(at, 'pipe');
      },
      'it is not a regular file',
    ],
    [
      'a link to itself',
      (at) => {
        symlinkSync('link', path.join(at, 'link'));
        return path.join(at, 'link');
      },
      'its symbolic links go round in a circle',
    ],
  ])('%s', async (_, make, fault) => {
    const file = make(folder());
    expect(await checkReadable(file)).toBe(fault);
    expect(outcome(await readOnce(file, 100))).toBe(fault ?? 1);
  });
});

/** Different at every read. */
const everNew = '/proc/sys/kernel/random/uuid';

it.runIf(existsSync(everNew))('a file that differs at every read is a fault', async () => {
  const read = await readStableFile(everNew, 100, 1);
  expect(outcome(read)).toBe('it keeps changing');
});

it('the creation of a missing file is a change', async () => {
  const file = path.join(makeFolder(), 'later/file');
  const told: (number | string)[] = [];
  let looks = 0;
  const read = (path: string) => {
    looks += 1;
    return readOnce(path, 100);
  };
  const watch = new FileWatch(file, (content) => told.push(outcome(content)), {
    ...{ read, stableMs: 1, pollMs: 5 },
  });
  onTestFinished(() => watch.close());
  await expect.poll(() => looks).toBeGreaterThan(2);
  expect(told).toEqual([]);
  mkdirSync(path.dirname(file));
  writeFileSync(file, 'x');
  await expect.poll(() => told).toEqual([1]);
});
