import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  certificateEndMs,
  certificateNotice,
  certificateProblems,
} from '../../../src/config/certificates.ts';
import { testCertificate, testKey } from '../../harness/tls-fixture.ts';

const dayMs = 86_400_000;
const endMs = Date.parse('2030-06-15T12:00:00Z');

it.each<[string, number, string | undefined]>([
  ['two weeks', 14 * dayMs, undefined],
  ['less than two weeks', 14 * dayMs - 1, 'the certificate expires in 13 days (2030-06-15)'],
  ['two days', 2 * dayMs, 'the certificate expires in 2 days (2030-06-15)'],
  ['less than two days', 2 * dayMs - 1, 'the certificate expires in 1 day (2030-06-15)'],
  ['a millisecond', 1, 'the certificate expires in 0 days (2030-06-15)'],
  ['no time', 0, 'the certificate has expired (2030-06-15)'],
  ['minus a day', -dayMs, 'the certificate has expired (2030-06-15)'],
])('the notice of a certificate with %s left', (_, leftMs, notice) => {
  expect(certificateNotice(endMs, endMs - leftMs)).toBe(notice);
});

it('no notice for a text that is no certificate', () => {
  expect(certificateEndMs({ cert: 'nonsense' })).toBeNaN();
  expect(certificateNotice(Number.NaN, 0)).toBeUndefined();
});

describe('problems name the setting and its files', () => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const strangeKey = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
  const file = (role: string, text?: string) => ({ role, name: `${role}.pem`, ...(text && { text }) });
  const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
  /** At a time when the test certificate is valid for 100 more days. */
  const problemsOf = (files: ReturnType<typeof file>[]) => {
    vi.useFakeTimers({ now: certificateEndMs({ cert: testCertificate }) - 100 * dayMs, toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    return [...certificateProblems(files)].map(
      ({ path, text, severity = 'error' }) => `${severity}: ${path.join('.')} ${text}`,
    );
  };

  it.each(['listen.tls', 'upstream.tls', 'store.tls'])('%s', (setting) => {
    const [ofCert, ofKey] = [`${setting}.cert`, `${setting}.key`];
    const pair = (cert: string, key?: string) =>
      problemsOf([file(ofCert, cert), ...(key === undefined ? [] : [file(ofKey, key)])]);
    const names = `error: ${setting} names ${ofCert}.pem and ${ofKey}.pem:`;
    expect(pair(testCertificate, testKey)).toEqual([]);
    expect(pair(testCertificate, strangeKey)).toEqual([
      `${names} the private key is not that of the certificate`,
    ]);
    expect(pair('nonsense', testKey)).toEqual([`${names} the first one contains no certificate in PEM`]);
    expect(pair(testCertificate, 'nonsense')).toEqual([
      `${names} they cannot be used as certificate and private key`,
    ]);
    // An unreadable file is reported elsewhere.
    expect(pair(testCertificate)).toEqual([]);
    expect(problemsOf([file(ofCert), file(ofKey, testKey)])).toEqual([]);
  });

  it('listen.tls: a certificate that ends soon is a warning', () => {
    const files = [file('listen.tls.cert', testCertificate), file('listen.tls.key', testKey)];
    vi.useFakeTimers({ now: certificateEndMs({ cert: testCertificate }) - dayMs, toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    expect([...certificateProblems(files)]).toMatchObject([
      { path: ['listen', 'tls'], text: expect.stringContaining('expires in 1 day'), severity: 'warning' },
    ]);
  });

  it.each([
    [testCertificate, []],
    [testCertificate + testCertificate, []],
    ['nonsense', ['error: upstream.tls.ca names upstream.tls.ca.pem: it contains no certificate in PEM']],
    [
      testCertificate + broken,
      ['error: upstream.tls.ca names upstream.tls.ca.pem: a certificate in it cannot be read'],
    ],
    [undefined, []],
  ])('upstream.tls.ca %#', (text, problems) => {
    expect(problemsOf([file('upstream.tls.ca', text)])).toEqual(problems);
  });
});
