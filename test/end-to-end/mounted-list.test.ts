import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { listOf, startShopward } from '../harness/shopward.ts';

/** Mounts that only the proxy sees need a namespace of its own, which not everybody may make. */
const mayMount = spawnSync('unshare', ['-m', 'true']).status === 0;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-mounts-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Starts the proxy over a list in `seen/`, behind a mount that `script` makes of `real/`. */
async function startOver(name: string, script: string) {
  const [real, seen] = [path.join(folder, name, 'real'), path.join(folder, name, 'seen')];
  for (const place of [real, seen]) {
    await mkdir(place, { recursive: true });
    await writeFile(path.join(place, 'list.yaml'), listOf(['GET /first']));
  }
  const shopward = await startShopward({
    upstream: 'http://127.0.0.1:9',
    config: { protectedResources: path.join(seen, 'list.yaml'), admin: { edit: true } },
    launcher: ['unshare', '-m', 'sh', '-ec', `REAL=${real} SEEN=${seen}; ${script}; exec "$@"`, 'sh'],
  });
  const ask = async (place: string) =>
    (await exchangeRaw(shopward.port, `GET ${place} HTTP/1.1\r\nHost: x\r\n\r\n`)).status;
  const save = async (text: string) => {
    const { entityTag } = (await (await fetch(`${shopward.adminUrl}/api/list`)).json()) as {
      entityTag: string;
    };
    const body = JSON.stringify({ text, entityTag });
    const headers = { 'Content-Type': 'application/json' };
    const response = await fetch(`${shopward.adminUrl}/api/list`, { method: 'POST', headers, body });
    return [response.status, ((await response.json()) as { error: string }).error];
  };
  return { shopward, ask, save, file: path.join(real, 'list.yaml') };
}

describe.skipIf(!mayMount)('a list that is mounted', () => {
  it('by itself: an edit where it comes from is in force; the console says that it cannot replace it', async () => {
    const { shopward, ask, save, file } = await startOver(
      'file',
      'mount --bind $REAL/list.yaml $SEEN/list.yaml',
    );
    expect([await ask('/first'), await ask('/second')]).toEqual([401, 502]);
    await writeFile(file, listOf(['GET /second']));
    await eventually('the edit', async () => (await ask('/second')) === 401 || undefined);
    expect(await ask('/first')).toBe(502);
    expect(await save(listOf(['GET /third']))).toEqual([
      500,
      'the list cannot be written: the file is mounted by itself and cannot be replaced: mount its folder instead',
    ]);
    expect(await readFile(file, 'utf8')).toBe(listOf(['GET /second']));
    await shopward.kill();
  });

  it.each([
    [
      'read-only',
      'mount --bind $REAL $SEEN; mount -o remount,ro,bind $SEEN',
      'the file system is read-only (a mounted ConfigMap?): edit the list where it comes from',
    ],
    [
      'on a full disk',
      'mount -t tmpfs -o size=64k none $SEEN; cp $REAL/list.yaml $SEEN; cat /dev/zero > $SEEN/fill 2>/dev/null || true',
      'no space is left',
    ],
  ])('%s: the console says so, and the list in force stays', async (name, script, text) => {
    const { shopward, ask, save } = await startOver(name.replaceAll(' ', '-'), script);
    expect(await save(listOf(['GET /third']))).toEqual([500, `the list cannot be written: ${text}`]);
    expect([await ask('/first'), await ask('/third')]).toEqual([401, 502]);
    await shopward.kill();
  });
});
