import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readKeyFiles } from '../../../src/access/key-document.ts';
import { makeSigner, publicJwk, publicPem } from './signing.ts';

const first = makeSigner('ES256');
const second = makeSigner('ES256');
let folder = '';
let count = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'keys-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function write(text: string | object): Promise<string> {
  const file = join(folder, `${count++}.key`);
  await writeFile(file, typeof text === 'string' ? text : JSON.stringify(text));
  return file;
}

describe('readKeyFiles', () => {
  it('reports the problems of all files together', async () => {
    const good = await write(publicJwk(first, { kid: 'a' }));
    const same = await write({ keys: [publicJwk(second, { kid: 'a' })] });
    const broken = await write('{');
    const { problems } = await readKeyFiles([good, same, broken, folder], ['ES256']);
    expect(problems).toEqual([
      { file: broken, text: 'is not valid JSON' },
      { file: folder, text: 'it is not a regular file' },
      { file: undefined, text: 'two different keys have the kid "a"' },
    ]);
  });

  it('two files with the same key: one key', async () => {
    const files = [await write(publicJwk(first, { kid: 'a' })), await write(publicJwk(first, { kid: 'a' }))];
    const { keys, problems } = await readKeyFiles(files, ['ES256']);
    expect([keys.length, problems]).toEqual([1, []]);
  });

  const keys = (count: number) =>
    Array.from({ length: count }, () => publicPem(makeSigner('ES256'))).join('');
  it.each<[string, () => string | object, string | undefined]>([
    ['no usable key', () => ({ keys: [] }), 'no key here fits a configured algorithm'],
    ['17 keys', () => keys(17), '17 keys; at most 16 are allowed'],
    ['256 KiB', () => publicPem(first).padEnd(262_144), undefined],
    ['256 KiB and an octet', () => publicPem(first).padEnd(262_145), 'it is larger than 262144 bytes'],
  ])('a file with %s', async (_, content, text) => {
    const { problems } = await readKeyFiles([await write(content())], ['ES256']);
    expect(problems.map((problem) => problem.text)).toEqual(text === undefined ? [] : [text]);
  });
});
