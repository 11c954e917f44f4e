import { spawnSync } from 'node:child_process';
import { expect, it, test } from 'vitest';
import { curlOptions, longOf, otherWithValue } from '../../src/cli/explain/curl-options.ts';
import { readCurl } from '../../src/cli/explain/pasted-command.ts';

/** What the curl of this machine says of its options: ` -o, --output <file>  Write to file`. */
const help = spawnSync('curl', ['--help', 'all'], { encoding: 'utf8' }).stdout ?? '';
const options = [...help.matchAll(/^ (?: {4}|-(.), )--([\w.-]+) ?([<[]?)/gm)].map(
  ([, short, long = '', value]) => ({ short, long, takesValue: value !== '' }),
);

const takesValue = (name: string) =>
  otherWithValue.has(name) || (Object.hasOwn(curlOptions, name) && !curlOptions[name]?.isFlag);

it.skipIf(options.length === 0)('knows of every option of curl whether a value follows', () => {
  expect(options.length).toBeGreaterThan(200);
  // `--help` may stand alone.
  const wrong = options.filter(
    ({ short, long, takesValue: isTaken }) =>
      long !== 'help' &&
      (takesValue(long) !== isTaken ||
        (short !== undefined && takesValue(longOf.get(short) ?? short) !== isTaken)),
  );
  expect(wrong).toEqual([]);
});

test.each(['--etag-save tags', '--proxy-header A:b', '--pinnedpubkey sha256//x', '-o file', '-sSo file'])(
  'a value of %s is not taken for the URL',
  (option) => {
    expect(readCurl(`curl ${option} https://shop.example/carts`)).toMatchObject({
      method: 'GET',
      url: 'https://shop.example/carts',
    });
  },
);
