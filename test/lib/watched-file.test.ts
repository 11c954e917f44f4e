import { execFileSync } from 'node:child_process';
import fs, {
  existsSync,
  type FSWatcher,
  mkdirSync,
  renameSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  checkReadable,
  type FileBytes,
  FileWatch,
  readOnce,
  readSecret,
  readSettledFile,
} from '../../src/lib/watched-file.ts';
import { makeFolder } from '../config/config-folder.ts';

const mib = 1024 * 1024;

function makeFile(content: string | Uint8Array): string {
  return path.join(makeFolder({ file: content }), 'file');
}

/** Octets of what was read, or why it was not. */
function outcome(read: FileBytes): number | string {
  return 'bytes' in read ? read.bytes.length : read.fault;
}

describe('how large a file may be', () => {
  it.each([
    ['of ten octets where ten are allowed', 10, 10],
    ['of one more', 11, 'it is larger than 10 bytes'],
    ['an empty one', 0, 0],
  ])('%s', async (_, bytes, found) => {
    const file = makeFile(Buffer.alloc(bytes));
    expect(outcome(await readOnce(file, 10))).toBe(found);
    expect(outcome(await readSettledFile(file, { maxBytes: 10, settleMs: 1 }))).toBe(found);
  });

  it.runIf(existsSync('/proc/version'))('one that holds more than it says it does', async () => {
    expect(outcome(await readOnce('/proc/version', 10))).toBe('it is larger than 10 bytes');
    expect(outcome(await readOnce('/proc/version', 100_000))).toBeGreaterThan(10);
  });

  it('a watched one: 16 MiB', async () => {
    const file = makeFile('');
    const told = Promise.withResolvers<FileBytes>();
    const later = Promise.withResolvers<FileBytes>();
    const seen = [told, later];
    truncateSync(file, 16 * mib);
    const watch = new FileWatch(file, (content) => seen.shift()?.resolve(content), {
      settleMs: 1,
      pollMs: 600_000,
      known: Buffer.from('old'),
    });
    onTestFinished(() => watch.close());
    expect(outcome(await told.promise)).toBe(16 * mib);
    truncateSync(file, 16 * mib + 1);
    watch.reload();
    expect(outcome(await later.promise)).toBe(`it is larger than ${16 * mib} bytes`);
  });

  it.each([
    [64 * 1024, undefined],
    [64 * 1024 + 1, 'it is larger than 65536 bytes'],
  ])('a secret: %i octets', (bytes, fault) => {
    const read = readSecret(makeFile(Buffer.alloc(bytes, 'a')));
    expect('fault' in read ? read.fault : undefined).toBe(fault);
  });
});

it.each([
  ['s3cret\n', 's3cret'],
  ['s3cret\r\n', 's3cret'],
  ['s3cret\n\n', 's3cret\n'],
  [' s3cret ', ' s3cret '],
])('of the secret %j the last line end is no part', (content, text) => {
  expect(readSecret(makeFile(content))).toEqual({ text, bytes: Buffer.from(content) });
});

it('a secret is UTF-8', () => {
  expect(readSecret(makeFile(Uint8Array.of(0xff)))).toEqual({ fault: 'it is not UTF-8' });
});

describe('what is no file to read', () => {
  const folder = () => makeFolder({ file: 'x' });
  it.each<[string, (at: string) => string, string | undefined]>([
    ['a file', (at) => path.join(at, 'file'), undefined],
    ['nothing', (at) => path.join(at, 'none'), 'there is no such file'],
    ['below a file', (at) => path.join(at, 'file/below'), 'there is no such file'],
    ['a folder', (at) => at, 'it is not a regular file'],
    [
      'a pipe that nobody writes to',
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

/** Another one at each reading. */
const everNew = '/proc/sys/kernel/random/uuid';

it.runIf(existsSync(everNew))('a file that never is the same twice is given up', async () => {
  const read = await readSettledFile(everNew, { maxBytes: 100, settleMs: 1 });
  expect(outcome(read)).toBe('it keeps changing');
});

describe('a folder that is watched', () => {
  /** Watches of folders that were begun since, and which of them are open. */
  function countWatches() {
    const begun: FSWatcher[] = [];
    const open = new Set<FSWatcher>();
    const { watch } = fs;
    const restore = () => {
      fs.watch = watch;
      syncBuiltinESMExports();
    };
    fs.watch = ((...given: Parameters<typeof watch>) => {
      const watcher = watch(...given);
      const close = watcher.close.bind(watcher);
      watcher.close = () => {
        open.delete(watcher);
        close();
      };
      begun.push(watcher);
      open.add(watcher);
      return watcher;
    }) as typeof watch;
    syncBuiltinESMExports();
    onTestFinished(restore);
    return { begun, open };
  }

  /** Looks at the file all the time, and counts that. */
  function look(file: string) {
    const told: (number | string)[] = [];
    let looks = 0;
    const read = (path: string) => {
      looks += 1;
      return readOnce(path, 100);
    };
    const watch = new FileWatch(file, (content) => told.push(outcome(content)), {
      ...{ read, settleMs: 1, pollMs: 5 },
    });
    onTestFinished(() => watch.close());
    /** Resolves when one whole look that has begun after this is over. */
    const looked = async () => {
      const before = looks;
      await expect.poll(() => looks).toBeGreaterThan(before + 1);
    };
    return { told, looked, watch };
  }

  it('is watched once, as long as it is the same one, and no more when all is over', async () => {
    const { begun, open } = countWatches();
    const folder = makeFolder({ 'd/file': 'x' });
    const { looked, watch } = look(path.join(folder, 'd/file'));
    await looked();
    expect([begun.length, open.size]).toEqual([1, 1]);
    renameSync(path.join(folder, 'd'), path.join(folder, 'old'));
    await looked();
    expect([begun.length, open.size]).toEqual([1, 0]);
    mkdirSync(path.join(folder, 'd'));
    await looked();
    expect([begun.length, open.size]).toEqual([2, 1]);
    watch.close();
    expect(open.size).toBe(0);
  });

  it('is watched anew where its watch broke', async () => {
    const { begun, open } = countWatches();
    const { looked } = look(makeFile('x'));
    await looked();
    begun[0]?.emit('error', new Error('made up'));
    await looked();
    expect([begun.length, open.size]).toEqual([2, 1]);
  });

  it('may come later: what is known of a file that is not there is that', async () => {
    const file = path.join(makeFolder(), 'later/file');
    const { told, looked } = look(file);
    await looked();
    expect(told).toEqual([]);
    mkdirSync(path.dirname(file));
    writeFileSync(file, 'x');
    await expect.poll(() => told).toEqual([1]);
  });
});
