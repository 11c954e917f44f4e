import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

/** What `listen.tls` serves: PEM texts, and what a handshake may use. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3';
  /** Suites of TLS 1.2 in OpenSSL's names, separated by colons. */
  readonly ciphers?: string;
}

const dayMs = 86_400_000;
/** How long before its end a certificate is told of. */
const noticeDays = 14;

/** Why a certificate chain and a private key cannot be used; undefined when they can. Never a part of the key. */
export function validateCertificate(tls: Certificate): string | undefined {
  if (Number.isNaN(certificateEndMs(tls))) return 'the first one holds no certificate in PEM';
  try {
    createSecureContext(tls);
    return undefined;
  } catch (fault) {
    const { code } = fault as NodeJS.ErrnoException;
    if (code === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH') return 'the private key is not that of the certificate';
    if (code === 'ERR_SSL_NO_CIPHER_MATCH') return 'ciphers names no suite that is known';
    return 'they cannot be used as certificate and private key';
  }
}

/** When the certificate ends, in milliseconds since the epoch; NaN: it is none. */
export function certificateEndMs({ cert }: Pick<Certificate, 'cert'>): number {
  try {
    return Date.parse(new X509Certificate(cert).validTo);
  } catch {
    return Number.NaN;
  }
}

/** What is to be told of a certificate that ends within two weeks, or has ended: clients then refuse it. */
export function certificateNotice(endMs: number, nowMs: number): string | undefined {
  const days = Math.floor((endMs - nowMs) / dayMs);
  if (!(days < noticeDays)) return undefined;
  const date = new Date(endMs).toISOString().slice(0, 10);
  if (endMs <= nowMs) return `the certificate has expired (${date})`;
  return `the certificate expires in ${days} ${days === 1 ? 'day' : 'days'} (${date})`;
}
