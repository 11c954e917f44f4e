import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Secrets, SecretsInForce, secretsOf, watchSecrets } from '../../src/app/secrets.ts';
import { certificateEndMs } from '../../src/config/certificates.ts';
import { loadConfig } from '../../src/config/load.ts';
import { makeFolder } from '../config/config-folder.ts';
import { testCertificate, testKey } from '../harness/tls-fixture.ts';

const dayMs = 86_400_000;
const endMs = certificateEndMs({ cert: testCertificate });
const none: Secrets = { tls: undefined, store: {}, issuers: [], adminToken: undefined, problems: [] };
const pair = { cert: testCertificate, key: testKey };
const problem = { file: 'c.yaml', line: 2, column: 3, severity: 'error', text: 'is bad' } as const;

function at(nowMs: number): void {
  vi.useFakeTimers({ now: nowMs, toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
}

describe('secrets in force', () => {
  const values = ({ metrics }: SecretsInForce) => metrics.map(({ name, value }) => [name, value()]);

  it('say that the last change is not in force, and until it is', () => {
    const secrets = new SecretsInForce(none);
    expect(secrets.health()).toMatchObject({ status: 'ok', reasons: [] });
    expect(values(secrets)).toEqual([['shopward_secrets_last_reload_success', 1]]);
    secrets.apply({ ...none, problems: [problem] });
    expect(secrets.health()).toMatchObject({
      ...{ status: 'degraded', problems: [problem] },
      reasons: [expect.stringMatching(/^secrets: c\.yaml:2:3: .*is bad$/)],
    });
    expect(values(secrets)).toEqual([['shopward_secrets_last_reload_success', 0]]);
    secrets.apply(none);
    expect(secrets.health().reasons).toEqual([]);
  });

  it('say when a certificate ends, ours and that for the upstream', () => {
    at(endMs - 3 * dayMs);
    const secrets = new SecretsInForce({ ...none, tls: pair, upstreamTls: pair });
    expect(secrets.health().reasons).toEqual([
      expect.stringContaining('listen.tls: the certificate expires in 3 days'),
      expect.stringContaining('upstream.tls: the certificate expires in 3 days'),
    ]);
    expect(values(secrets)[1]).toEqual(['shopward_certificate_expiry_timestamp_seconds', endMs / 1000]);
    expect(new SecretsInForce({ ...none, upstreamTls: { ca: testCertificate } }).health().reasons).toEqual(
      [],
    );
    // Without a certificate there is nothing to renew.
    secrets.apply({ ...none, tls: undefined, upstreamTls: undefined });
    expect(secrets.health().reasons).toHaveLength(1);
    const late = new SecretsInForce(none);
    late.apply({ ...none, upstreamTls: pair });
    expect(late.health().reasons).toHaveLength(1);
  });
});

describe('secrets of files', () => {
  /** A configuration that names files, and what happens when they change. */
  async function follow(files: Readonly<Record<string, string>> = {}) {
    const folder = makeFolder({
      'protected-resources.yaml': 'groups: {}\n',
      ...{
        'token.txt': 'a'.repeat(32),
        'key.txt': 'k'.repeat(64),
        'proxy.txt': 'p',
        'c.pem': testCertificate,
      },
      ...{ 'k.pem': testKey, ...files },
      'c.yaml': `upstream: { url: "http://glue.internal" }
listen: { tls: { cert: c.pem, key: k.pem } }
publicUrl: "https://\${file:proxy.txt}.example"
admin: { token: "\${file:token.txt}" }
auth: { algorithms: [HS256], keys: { secret: "\${file:key.txt}" } }
`,
    });
    const loaded = await loadConfig({ file: 'c.yaml', env: {}, cwd: folder });
    if ('problems' in loaded) throw new Error(JSON.stringify(loaded.problems));
    const said: string[] = [];
    const level = (name: string) => (fields: { event: string; settings?: readonly string[] }) =>
      void said.push([name, fields.event, ...(fields.settings ?? [])].join(' '));
    const log = { info: level('info'), warn: level('warn'), error: level('error'), debug: level('debug') };
    const given: Secrets[] = [];
    const watch = watchSecrets(loaded, (secrets) => void given.push(secrets), log as never);
    onTestFinished(() => watch.close());
    const write = async (name: string, text: string) => {
      const before = given.length;
      writeFileSync(path.join(folder, name), text);
      watch.reload();
      await expect.poll(() => given.length).toBeGreaterThan(before);
    };
    return { loaded, said, given, write, folder };
  }

  it('are those of the configuration', async () => {
    at(endMs - 100 * dayMs);
    const { loaded, said } = await follow();
    expect(secretsOf(loaded)).toMatchObject({
      ...{ tls: pair, adminToken: 'a'.repeat(32), problems: [], upstreamTls: undefined },
      issuers: [{ key: 'k'.repeat(64), client: undefined }],
    });
    expect(said).toEqual([]);
  });

  it('take effect when they change; what only a restart can change is named', async () => {
    at(endMs - 100 * dayMs);
    const { given, said, write, folder } = await follow();
    await write('token.txt', 'b'.repeat(32));
    expect([given[0]?.adminToken, said]).toEqual(['b'.repeat(32), ['info secrets-reloaded']]);
    await write('key.txt', 'l'.repeat(64));
    expect(given[1]?.issuers[0]?.key).toBe('l'.repeat(64));
    expect(said.slice(1)).toEqual(['info secrets-reloaded']);
    await write('proxy.txt', 'q');
    expect(said.slice(2)).toEqual(['info secrets-reloaded', expect.stringMatching(/^warn restart-needed /)]);
    expect(readFileSync(path.join(folder, 'proxy.txt'), 'utf8')).toBe('q');
  });

  it('that are wrong leave those in force that were good', async () => {
    at(endMs - 100 * dayMs);
    const { given, said, write } = await follow();
    await write('key.txt', 'too short');
    expect(given[0]).toMatchObject({ adminToken: 'a'.repeat(32), issuers: [{ key: 'k'.repeat(64) }] });
    expect(given[0]?.problems).toHaveLength(1);
    expect(said).toEqual(['error secrets-refused']);
    await write('key.txt', 'l'.repeat(64));
    expect(given[1]).toMatchObject({ problems: [], issuers: [{ key: 'l'.repeat(64) }] });
  });

  it('of a certificate that is about to end are reported at the start, and each day', async () => {
    vi.useFakeTimers({ now: endMs - dayMs, toFake: ['Date', 'setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const { said } = await follow();
    expect(said).toEqual(['warn certificate-expires']);
    vi.advanceTimersByTime(dayMs - 1);
    expect(said).toHaveLength(1);
    vi.advanceTimersByTime(1);
    expect(said).toHaveLength(2);
  });
});
