import { expect, it, onTestFinished, vi } from 'vitest';
import { createSecretsReport, type Secrets } from '../../../src/app/secrets.ts';
import { certificateEndMs } from '../../../src/config/certificates.ts';
import { testCertificate, testKey } from '../../harness/tls-fixture.ts';

const dayMs = 86_400_000;
const endMs = certificateEndMs({ cert: testCertificate });
const hot = { mode: 'enforce', rateLimits: false, log: { level: 'info' } } as const;
const none: Secrets = { hot, tls: undefined, store: {}, issuers: [], adminToken: undefined, problems: [] };
const pair = { cert: testCertificate, key: testKey };

function at(nowMs: number): void {
  vi.useFakeTimers({ now: nowMs, toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
}

const values = ({ metrics }: ReturnType<typeof createSecretsReport>) =>
  metrics.map(({ name, value }) => [name, value()]);

it('secrets in force report when the certificates of listen.tls and upstream.tls expire', () => {
  at(endMs - 3 * dayMs);
  const secrets = createSecretsReport({ ...none, tls: pair, upstreamTls: pair });
  expect(secrets.health().reasons).toEqual([
    expect.stringContaining('listen.tls: the certificate expires in 3 days'),
    expect.stringContaining('upstream.tls: the certificate expires in 3 days'),
  ]);
  expect(values(secrets)[1]).toEqual(['shopward_certificate_expiry_timestamp_seconds', endMs / 1000]);
  expect(createSecretsReport({ ...none, upstreamTls: { ca: testCertificate } }).health().reasons).toEqual([]);
  // Removing listen.tls needs a restart, so its certificate still counts.
  secrets.apply({ ...none, tls: undefined, upstreamTls: undefined });
  expect(secrets.health().reasons).toHaveLength(1);
  const late = createSecretsReport(none);
  late.apply({ ...none, upstreamTls: pair });
  expect(late.health().reasons).toHaveLength(1);
});
