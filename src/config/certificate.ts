import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

/** PEM texts of `listen.tls`. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Why a certificate chain and a private key cannot be used; undefined when they can. Never a part of the key. */
export function judgeCertificate({ cert, key }: Certificate): string | undefined {
  try {
    const { validTo } = new X509Certificate(cert);
    if (Date.parse(validTo) < Date.now()) return `the certificate has expired (${validTo})`;
  } catch {
    return 'the first one holds no certificate in PEM';
  }
  try {
    createSecureContext({ cert, key });
    return undefined;
  } catch (fault) {
    return (fault as NodeJS.ErrnoException).code === 'ERR_OSSL_X509_KEY_VALUES_MISMATCH'
      ? 'the private key is not that of the certificate'
      : 'they cannot be used as certificate and private key';
  }
}
