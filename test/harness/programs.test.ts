import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';

const folder = mkdtempSync(path.join(tmpdir(), 'shopward-apt-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** As apt-get in this: who comes while another one works is sent away; and nothing is known of packages before `update`. */
const aptGet = `#!/bin/sh
cd '${folder}'
mkdir busy || exit 100
sleep 0.2
status=0
case "$*" in *update*) touch lists ;; *) [ -e lists ] || status=100 ;; esac
rmdir busy
exit $status
`;

it('files that want programs at one time wait for one another', async () => {
  writeFileSync(path.join(folder, 'apt-get'), aptGet);
  chmodSync(path.join(folder, 'apt-get'), 0o755);
  const module = path.join(import.meta.dirname, 'programs.ts');
  const script = `const { install } = await import(${JSON.stringify(module)}); process.exit(install(['wrk']) ? 0 : 1);`;
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` };
  const install = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { env });
  await expect(Promise.all([install(), install(), install(), install()])).resolves.toHaveLength(4);
});
