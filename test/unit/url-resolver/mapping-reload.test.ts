import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { MappingFile } from '../../../src/url-resolver/mapping-file/mapping-file.ts';

it('reloads that are asked for during a load are one, and none begins after close', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'shopward-mapping-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = path.join(folder, 'urls.csv');
  await writeFile(file, 'url,entityType,entityId\n/en/a,cms-pages,1\n');
  let loads = 0;
  const mappings = new MappingFile({
    path: file,
    stableMs: 1,
    onEvent: () => {
      loads += 1;
    },
  });
  await Promise.all(Array.from({ length: 20 }, () => mappings.reload()));
  expect(loads).toBe(2);
  const late = [mappings.reload(), mappings.reload()];
  await mappings.close();
  await Promise.all(late);
  expect(loads).toBe(3);
});
