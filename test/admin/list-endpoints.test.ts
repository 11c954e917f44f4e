import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { packList } from '../../src/access/packed-list.ts';
import type { ProtectedResources } from '../../src/access/protected-list.ts';
import { parseProtectedList } from '../../src/access/protected-list-document.ts';
import { type AdminAnswer, askEndpoint, type JsonEndpoint } from '../../src/admin/admin-endpoint.ts';
import { createListEndpoints, replaceListFile } from '../../src/admin/list-endpoints.ts';

const text =
  'groups:\n  Carts:\n    - GET /carts\n    - { match: "GET /reports", scopes: [analyst] }\ncomplete: true\n';

interface Answered {
  readonly status: number;
  /** What any of the three answers may hold. */
  readonly body: {
    readonly text: string;
    readonly entityTag: string;
    readonly error: string;
    readonly rows: number;
    readonly problems: readonly object[];
    readonly difference: Readonly<
      Record<'added' | 'removed' | 'changed', readonly { readonly id: string }[]>
    >;
  };
}

describe('the edit of the list', () => {
  let folder: string;
  let file: string;
  const paths = { ignoredPrefixes: [] };
  const inForce = packList(parseProtectedList(text, 'list.yaml').list as ProtectedResources, paths);
  let written: unknown[];
  const listFolder = () => readdir(folder);

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'shopward-list-'));
    file = path.join(folder, 'list.yaml');
    await writeFile(file, text);
    written = [];
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const ask = async (target: string, body?: unknown, isEditable = true): Promise<Answered> => {
    const endpoints = createListEndpoints({
      file,
      isEditable,
      paths,
      inForce: () => inForce,
      onWritten: (change) => written.push(change),
    });
    const endpoint = endpoints.find(
      ({ method, path: place }) => `${method} ${place}` === target,
    ) as JsonEndpoint;
    return (await askEndpoint(endpoint, '', body)) as AdminAnswer as Answered;
  };
  const entityTag = async () => (await ask('GET /api/list')).body.entityTag;

  it('gives the text, a name of its content, and whether it may be edited', async () => {
    const { status, body } = await ask('GET /api/list');
    expect([status, body]).toEqual([200, { file, isEditable: true, text, entityTag: expect.any(String) }]);
    await writeFile(file, `${text}# more\n`);
    expect(await entityTag()).not.toBe(body.entityTag);
  });

  it('keeps a byte order mark and line ends as they are', async () => {
    const exotic = `\ufeff${text.replaceAll('\n', '\r\n')}`;
    await writeFile(file, exotic);
    expect((await ask('GET /api/list')).body.text).toBe(exotic);
  });

  it.each([
    ['not there', async () => rm(file), 'there is no such file'],
    ['not UTF-8', async () => writeFile(file, Buffer.from([0xff, 0xfe, 0x00])), 'it is not UTF-8'],
  ])('says why a file that is %s cannot be read', async (_, spoil, why) => {
    await spoil();
    const answer = await ask('GET /api/list');
    expect(answer).toEqual({ status: 500, body: { error: `the list cannot be read: ${why}` } });
  });

  it('checks a text against the list in force, and changes nothing', async () => {
    const next = 'groups:\n  Carts:\n    - POST /carts\n    - GET /reports\ncomplete: true\n';
    const { status, body } = await ask('POST /api/list/check', { text: next }, false);
    expect(status).toBe(200);
    expect(body.rows).toBe(2);
    expect(body.difference.added).toEqual([
      { id: 'POST /carts', group: 'Carts', scopes: [], observe: false, line: 3 },
    ]);
    expect(body.difference.removed.map(({ id }) => id)).toEqual(['GET /carts']);
    expect(body.difference.changed).toMatchObject([
      { what: ['scopes'], isLooser: true, after: { id: 'GET /reports' } },
    ]);
    expect(await readFile(file, 'utf8')).toBe(text);
  });

  it('lets the process do other work while it checks a long list', async () => {
    const rows = Array.from({ length: 5_000 }, (_, i) => `    - GET /type-${i}/{id}\n`);
    const checked = ask('POST /api/list/check', { text: `groups:\n  A:\n${rows.join('')}complete: true\n` });
    let turns = 0;
    let isDone = false;
    void checked.then(() => {
      isDone = true;
    });
    while (!isDone) {
      await new Promise(setImmediate);
      turns++;
    }
    expect((await checked).body.rows).toBe(5_000);
    // Checked on the spot it would be done after one or two.
    expect(turns).toBeGreaterThan(20);
  });

  it('names every mistake with its place, and has no difference then', async () => {
    const { body } = await ask('POST /api/list/check', { text: 'groups:\n  A:\n    - FETCH /a\n' });
    expect(body.difference).toBeUndefined();
    expect(body.problems).toMatchObject([
      { file, line: 3, column: 7, severity: 'error' },
      { file, severity: 'error', text: expect.stringContaining('complete: true') },
    ]);
  });

  it.each([
    ['POST /api/list/check', {}],
    ['POST /api/list/check', { text: 1 }],
    ['POST /api/list/check', null],
    ['POST /api/list/check', []],
    ['POST /api/list', {}],
    ['POST /api/list', { text }],
    ['POST /api/list', { text, entityTag: 7 }],
  ])('%s with %j is no edit', async (target, body) => {
    expect((await ask(target, body)).status).toBe(400);
  });

  it('writes a good list that was made from the file as it is', async () => {
    await chmod(file, 0o640);
    const next = text.replace('GET /carts', 'GET /wishlists');
    const { status, body } = await ask('POST /api/list', { text: next, entityTag: await entityTag() });
    expect(status).toBe(200);
    expect(await readFile(file, 'utf8')).toBe(next);
    expect((await stat(file)).mode & 0o777).toBe(0o640);
    expect(body.entityTag).toBe(await entityTag());
    expect(written).toEqual([{ rows: 2, added: 1, removed: 1 }]);
    expect(await listFolder()).toEqual(['list.yaml']);
  });

  it.each([
    ['admin.edit is false', { text }, 403, false],
    ['a mistake', { text: text.replace('complete: true', '') }, 422, true],
    ['half a list', { text: text.slice(0, 40) }, 422, true],
    ['no rows', { text: 'groups: {}\ncomplete: true\n' }, 422, true],
    ['an empty text', { text: '' }, 422, true],
    ['a text of another state of the file', { text, entityTag: 'stale' }, 412, true],
  ])('writes nothing for %s', async (_, body, status, isEditable) => {
    const answer = await ask('POST /api/list', { entityTag: await entityTag(), ...body }, isEditable);
    expect(answer.status).toBe(status);
    expect(answer.body.error).toMatch(/\w/);
    expect(await readFile(file, 'utf8')).toBe(text);
    expect(await listFolder()).toEqual(['list.yaml']);
    expect(written).toEqual([]);
  });

  it('names the new content to whoever came too late', async () => {
    const before = await entityTag();
    await writeFile(file, `${text}# an editor was faster\n`);
    const answer = await ask('POST /api/list', { text, entityTag: before });
    expect([answer.status, answer.body.entityTag]).toEqual([412, await entityTag()]);
    expect(await readFile(file, 'utf8')).toContain('an editor was faster');
  });

  it('of several edits of one content only the first is written', async () => {
    const endpoints = createListEndpoints({
      file,
      isEditable: true,
      paths,
      inForce: () => inForce,
      onWritten: (change) => written.push(change),
    });
    const [, , write] = endpoints;
    const tag = await entityTag();
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, i) =>
        write?.run({
          body: { text: text.replace('/carts', `/carts-${i}`), entityTag: tag },
          query: new Map(),
        }),
      ),
    );
    expect(answers.map((answer) => answer?.status)).toEqual([200, 412, 412, 412, 412]);
    expect(await readFile(file, 'utf8')).toContain('/carts-0');
    expect(written).toHaveLength(1);
  });

  it('a second edit is not even checked before the first is written', async () => {
    const steps: string[] = [];
    const [, , write] = createListEndpoints({
      file,
      isEditable: true,
      paths,
      inForce() {
        steps.push('check');
        return inForce;
      },
      onWritten: () => steps.push('written'),
    });
    const tag = await entityTag();
    const edit = (to: string) =>
      write?.run({ body: { text: text.replace('/carts', to), entityTag: tag }, query: new Map() });
    const answers = await Promise.all([edit('/first'), edit('/second')]);
    expect(answers.map((answer) => answer?.status)).toEqual([200, 412]);
    expect(steps).toEqual(['check', 'written', 'check']);
  });

  it('leaves a symbolic link one, and replaces what it points to', async () => {
    const real = path.join(folder, 'real');
    await mkdir(real);
    await writeFile(path.join(real, 'list.yaml'), text);
    await rm(file);
    await symlink('real/list.yaml', file);
    const next = text.replace('/carts', '/wishlists');
    expect((await ask('POST /api/list', { text: next, entityTag: await entityTag() })).status).toBe(200);
    expect((await lstat(file)).isSymbolicLink()).toBe(true);
    expect(await readFile(path.join(real, 'list.yaml'), 'utf8')).toBe(next);
  });

  it('never shows a reader half of it', async () => {
    const long = (n: number) =>
      `groups:\n  A:\n${Array.from({ length: 2_000 }, (_, i) => `    - GET /a/${n}/${i}\n`).join('')}complete: true\n`;
    await writeFile(file, long(0));
    let isDone = false;
    const seen = new Set<string>();
    const reader = (async () => {
      while (!isDone) seen.add(await readFile(file, 'utf8'));
    })();
    let tag = await entityTag();
    for (let n = 1; n <= 20; n++) {
      const replaced = await replaceListFile(file, long(n), tag);
      if ('fault' in replaced) throw new Error(replaced.fault);
      tag = replaced.entityTag;
    }
    isDone = true;
    await reader;
    const whole = new Set(Array.from({ length: 21 }, (_, n) => long(n)));
    expect([...seen].filter((one) => !whole.has(one))).toEqual([]);
  });

  it('says why a file cannot be written, and leaves nothing behind', async () => {
    const gone = path.join(folder, 'gone.yaml');
    expect(await replaceListFile(gone, text, '')).toEqual({
      fault: 'unwritable',
      text: 'there is no such file',
    });
    expect(await listFolder()).toEqual(['list.yaml']);
  });
});
