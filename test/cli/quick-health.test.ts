import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { plainAdminAddress } from '../../src/cli/quick-health.ts';
import { loadConfig } from '../../src/config/load.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'shopward-quick-health-'));
afterAll(() => rmSync(folder, { recursive: true }));
const file = path.join(folder, 'shopward.yaml');

/** The rest of a configuration that is good. */
const others = 'auth: { keys: { jwks: https://shop.example/keys } }\nprotectedResources: list.yaml\n';

/** What `serve` takes from the same text. */
async function loadedAddress(text: string) {
  writeFileSync(path.join(folder, 'list.yaml'), 'groups: { A: [GET /a] }\ncomplete: true\n');
  writeFileSync(file, text);
  const loaded = await loadConfig({ file, env: { PORT: '7', ADMIN_TOKEN: 't' }, cwd: folder });
  if ('problems' in loaded) return 'problems';
  const { admin } = loaded.config;
  return admin === false ? false : { host: admin.host, port: admin.port };
}

const plain: Readonly<Record<string, string>> = {
  'no section': '',
  'no section, but words about it': '# admin: { port: 9 }\n',
  'a line for each': 'admin:\n  host: 127.0.0.1\n  port: 9000\n',
  'in another order, with comments': 'admin: # inside\n\n  # where\n  port: 9000 # ours\n  hosts: []\n',
  'the port alone': 'admin:\n    port: 9001\n',
  'another port stands deeper': 'admin:\n  hosts:\n    - a\n    - b\n  port: 9002\n',
  'in braces': 'admin: { host: 127.0.0.1, port: 9003 } # inside\n',
  'in braces, with a list': 'admin: { port: 9004, hosts: [a, b], host: 127.0.0.1 }\n',
  'lines that end as on Windows': 'admin:\r\n  port: 9005\r\n',
  'off loopback': 'admin:\n  host: 0.0.0.0\n  port: 8081\n  token: ${ADMIN_TOKEN}\n  hosts: [shop]\n',
};

const unplain: Readonly<Record<string, string>> = {
  off: 'admin: false\n',
  'a key in quotes': '"admin":\n  port: 9000\n',
  'a reference': 'admin:\n  port: ${PORT}\n',
  'a value in quotes': 'admin: { host: "127.0.0.1", port: 9000 }\n',
  'a number that is no plain one': 'admin: { port: 0x2328 }\n',
  'a free port': 'admin: { port: 0 }\n',
  'a key of it in quotes': 'admin:\n  "port": 9000\n',
  'an anchor': 'admin: &a\n  port: 9000\n',
  'braces over several lines': 'admin: { host: 127.0.0.1,\n  port: 9000 }\n',
  'a merge': 'admin:\n  <<: { port: 9000 }\n',
  'the whole in braces': '{ admin: { port: 9000 } }\n',
};

describe('the address that a quick health check asks', () => {
  it.each(Object.entries(plain))('is the one of the loader: %s', async (_, text) => {
    for (const whole of [text + others, others + text]) {
      const address = plainAdminAddress(whole);
      expect(address).toBeDefined();
      expect(address).toEqual(await loadedAddress(whole));
    }
  });
  it.each(Object.entries(unplain))('is left to the loader: %s', (_, text) => {
    expect(plainAdminAddress(text + others)).toBeUndefined();
  });
});
