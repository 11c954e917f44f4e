import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { mistake, type SettingProblem, warning } from './issues.ts';

/** `listen.tls`: PEM texts, and the oldest accepted version of TLS. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3';
  /** Suites of TLS 1.2 in OpenSSL's names, separated by colons. */
  readonly ciphers?: string;
}

const dayMs = 86_400_000;
/** A certificate is reported from this many days before its end. */
const noticeDays = 14;

/** Why a certificate chain and a private key cannot be used; undefined: they can. Never contains a part of the key. */
function validateCertificate(tls: Certificate): string | undefined {
  if (Number.isNaN(certificateEndMs(tls))) return 'the first one contains no certificate in PEM';
  try {
    createSecureContext(tls);
    return undefined;
  } catch (fault) {
    const { code } = fault as NodeJS.ErrnoException;
    if (code === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH') return 'the private key is not that of the certificate';
    return 'they cannot be used as certificate and private key';
  }
}

/** When the certificate ends, in milliseconds since the epoch; NaN: it is not a certificate. */
export function certificateEndMs({ cert }: Pick<Certificate, 'cert'>): number {
  try {
    return Date.parse(new X509Certificate(cert).validTo);
  } catch {
    return Number.NaN;
  }
}

/** What is wrong with a certificate that ends within two weeks, or has ended; undefined: nothing. */
export function certificateNotice(endMs: number, nowMs: number): string | undefined {
  const days = Math.floor((endMs - nowMs) / dayMs);
  if (!(days < noticeDays)) return undefined;
  const date = new Date(endMs).toISOString().slice(0, 10);
  if (endMs <= nowMs) return `the certificate has expired (${date})`;
  return `the certificate expires in ${days} ${days === 1 ? 'day' : 'days'} (${date})`;
}

const pemCertificate = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\r\n]+-----END CERTIFICATE-----/g;

/** Why a text is not a list of authorities; undefined: each certificate in it can be read. */
function validateAuthorities(text: string): string | undefined {
  const certificates = text.match(pemCertificate) ?? [];
  if (certificates.length === 0) return 'it contains no certificate in PEM';
  const isReadable = (cert: string) => !Number.isNaN(certificateEndMs({ cert }));
  return certificates.every(isReadable) ? undefined : 'a certificate in it cannot be read';
}

interface PemFile {
  readonly role: string;
  /** The name of the file in problems. */
  readonly name: string;
  readonly text?: string;
}

/** Problems of the certificate files. An expired one is only a warning: a proxy that does not start serves no client. */
export function* certificateProblems(files: readonly PemFile[]): Generator<SettingProblem> {
  for (const section of ['listen', 'upstream', 'store']) {
    const [ca, cert, key] = ['ca', 'cert', 'key'].map((name) =>
      files.find(({ role }) => role === `${section}.tls.${name}`),
    );
    const ofCa = ca?.text === undefined ? undefined : validateAuthorities(ca.text);
    if (ofCa !== undefined) yield mistake([section, 'tls', 'ca'], `names ${ca?.name}: ${ofCa}`);
    if (cert?.text === undefined || key?.text === undefined) continue;
    const tls = { cert: cert.text, key: key.text };
    const fault = validateCertificate(tls);
    const notice = certificateNotice(certificateEndMs(tls), Date.now());
    if (fault !== undefined) yield mistake([section, 'tls'], `names ${cert.name} and ${key.name}: ${fault}`);
    else if (notice !== undefined) yield warning([section, 'tls'], `names ${cert.name}: ${notice}`);
  }
}
