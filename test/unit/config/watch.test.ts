import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest';
import { type FileBytes, FileWatch, type WatchOptions } from '../../../src/lib/watched-file.ts';
import { makeFolder } from './config-folder.ts';

/** Watches a file. `until` waits for a reported content; `test` is the context of a concurrent test. */
function watchInTest(
  file: string,
  options: WatchOptions = {},
  test: Pick<TestContext, 'onTestFinished'> = { onTestFinished },
) {
  const told: string[] = [];
  const waiting = new Set<() => void>();
  const change = (content: FileBytes) => {
    told.push('bytes' in content ? content.bytes.toString() : `fault: ${content.fault}`);
    for (const wake of waiting) wake();
  };
  const fileWatch = new FileWatch(file, change, {
    pollMs: 5,
    stableMs: 1,
    known: readFileSync(file),
    ...options,
  });
  test.onTestFinished(() => fileWatch.close());
  /** Resolves once the latest report is `text`; the time-out of the test limits it. */
  const until = async (text: string) => {
    while (told.at(-1) !== text) {
      await new Promise<void>((resolve) => {
        waiting.add(resolve);
      });
    }
    waiting.clear();
  };
  return { told, until, close: () => fileWatch.close() };
}

/** Longer than the pause between two checks of the file. */
const pause = () => sleep(100);

/** How editors, people and platforms write files. */
const writers: Readonly<Record<string, (file: string, text: string) => void>> = {
  overwritten: (file, text) => writeFileSync(file, text),
  'rename over': (file, text) => {
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
  },
  'vim: move away, create anew, delete the old one': (file, text) => {
    renameSync(file, `${file}~`);
    writeFileSync(file, text);
    rmSync(`${file}~`);
  },
  'delete and create': (file, text) => {
    rmSync(file);
    writeFileSync(file, text);
  },
};

describe.concurrent('a change is reported', () => {
  it.for(Object.entries(writers))('%s, twice', async ([, write], test) => {
    const file = path.join(makeFolder({ 'list.yaml': 'zero' }, test), 'list.yaml');
    const { until } = watchInTest(file, {}, test);
    for (const text of ['first', 'second']) {
      write(file, text);
      await until(text);
    }
  });

  it('a directory that is replaced', async (test) => {
    const folder = makeFolder({ 'd/list': 'zero' }, test);
    const { until } = watchInTest(path.join(folder, 'd/list'), {}, test);
    for (const text of ['first', 'second']) {
      mkdirSync(path.join(folder, 'new'));
      writeFileSync(path.join(folder, 'new/list'), text);
      renameSync(path.join(folder, 'd'), path.join(folder, `old-${text}`));
      renameSync(path.join(folder, 'new'), path.join(folder, 'd'));
      await until(text);
    }
    writeFileSync(path.join(folder, 'd/list'), 'third');
    await until('third');
  });

  it('content of the same length and the same time, behind a link', async (test) => {
    const folder = makeFolder({ 'elsewhere/list': 'aaaa', 'here/other': '' }, test);
    const target = path.join(folder, 'elsewhere/list');
    symlinkSync('../elsewhere/list', path.join(folder, 'here/list'));
    utimesSync(target, 1_000_000, 1_000_000);
    const { until } = watchInTest(path.join(folder, 'here/list'), {}, test);
    writeFileSync(target, 'bbbb');
    utimesSync(target, 1_000_000, 1_000_000);
    await until('bbbb');
  });
});

it('a file that is being written is reported once two looks agree', async () => {
  const file = path.join(makeFolder({ list: 'zero' }), 'list');
  const looks = ['zero', '', 'row', 'row\nrow', 'row\nrow\n', 'row\nrow\n'];
  const read = async () => ({
    bytes: Buffer.from(looks.length > 1 ? (looks.shift() ?? '') : (looks[0] ?? '')),
  });
  const { told, until } = watchInTest(file, { read });
  await until('row\nrow\n');
  expect(told).toEqual(['row\nrow\n']);
});

it('a file that keeps changing is one fault, and is reported once it stays the same', async () => {
  const file = path.join(makeFolder({ list: 'zero' }), 'list');
  let reads = 0;
  const { told, until } = watchInTest(file, {
    read: async () => ({ bytes: Buffer.from(`row ${Math.min(++reads, 200)}`) }),
  });
  await until('row 200');
  expect(told).toEqual(['fault: it keeps changing', 'row 200']);
});

it('a change between reading and watching is reported, and no content twice', async () => {
  const file = path.join(makeFolder({ list: 'new' }), 'list');
  const { told, until } = watchInTest(file, { known: Buffer.from('old') });
  await until('new');
  utimesSync(file, 1, 1);
  writeFileSync(file, 'new');
  writeFileSync(file, 'last');
  await until('last');
  expect(told).toEqual(['new', 'last']);
});

it('the last of many quick edits is reported last', async () => {
  const file = path.join(makeFolder({ list: 'zero' }), 'list');
  const { until } = watchInTest(file);
  for (let edit = 0; edit <= 50; edit++) {
    writers['rename over']?.(file, `edit ${edit}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await until('edit 50');
});

it('reports nothing after close()', async () => {
  const file = path.join(makeFolder({ list: 'zero' }), 'list');
  const closed = watchInTest(file);
  const open = watchInTest(file, { stableMs: 60 });
  writeFileSync(file, 'after');
  closed.close();
  await open.until('after');
  expect(closed.told).toEqual([]);
});

it('does not report a change that is being read during close()', async () => {
  const file = path.join(makeFolder({ list: 'zero' }), 'list');
  const confirming = Promise.withResolvers<void>();
  const confirmed = Promise.withResolvers<FileBytes>();
  const after = { bytes: Buffer.from('after') };
  let looks = 0;
  const read = () => {
    looks += 1;
    if (looks === 1) return Promise.resolve(after);
    confirming.resolve();
    return confirmed.promise;
  };
  const { told, close } = watchInTest(file, { read });
  await confirming.promise;
  close();
  confirmed.resolve(after);
  await pause();
  expect(told).toEqual([]);
});

it('waits for the listener, and then reports the last content only', async () => {
  const file = path.join(makeFolder({ list: 'zero' }), 'list');
  const told: string[] = [];
  const first = Promise.withResolvers<void>();
  const last = Promise.withResolvers<void>();
  const taken = Promise.withResolvers<void>();
  const watch = new FileWatch(
    file,
    (content) => {
      told.push('bytes' in content ? content.bytes.toString() : content.fault);
      if (told.length > 1) return last.resolve();
      first.resolve();
      return taken.promise;
    },
    { pollMs: 20, stableMs: 1, known: Buffer.from('zero') },
  );
  onTestFinished(() => watch.close());
  writeFileSync(file, 'one');
  await first.promise;
  for (const text of ['two', 'three', 'four']) {
    writeFileSync(file, text);
    await pause();
  }
  expect(told).toEqual(['one']);
  taken.resolve();
  await last.promise;
  await pause();
  expect(told).toEqual(['one', 'four']);
});
