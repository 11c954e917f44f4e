import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { listOf, startShopward } from '../harness/shopward.ts';

/** The mount needs a mount namespace, which this user may lack the right to create. */
const mayMount = spawnSync('unshare', ['-m', 'true']).status === 0;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-mounts-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

it.skipIf(!mayMount)(
  'a list that is bind-mounted as a file is reloaded when its source is edited',
  async ({ onTestFinished }) => {
    const [real, seen] = [path.join(folder, 'real'), path.join(folder, 'seen')];
    for (const location of [real, seen]) {
      await mkdir(location, { recursive: true });
      await writeFile(path.join(location, 'list.yaml'), listOf(['GET /first']));
    }
    const script = `mount --bind ${real}/list.yaml ${seen}/list.yaml; exec "$@"`;
    const shopward = await startShopward({
      upstream: 'http://127.0.0.1:9',
      config: { protectedResources: path.join(seen, 'list.yaml') },
      launcher: ['unshare', '-m', 'sh', '-ec', script, 'sh'],
    });
    onTestFinished(() => shopward.kill());
    const ask = async (target: string) =>
      (await exchangeRaw(shopward.port, `GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)).status;
    expect([await ask('/first'), await ask('/second')]).toEqual([401, 502]);
    await writeFile(path.join(real, 'list.yaml'), listOf(['GET /second']));
    await eventually('the edit', async () => (await ask('/second')) === 401 || undefined);
    expect(await ask('/first')).toBe(502);
  },
);
