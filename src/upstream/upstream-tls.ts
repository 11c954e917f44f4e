import { createSecureContext } from 'node:tls';
import type { ClientOptions } from './port.ts';

/**
 * What the certificate of the upstream is checked against. The name is always given: without it Node's client would
 * take it from the `Host` field, and so from the client.
 */
export function verification({ upstream: { hostname }, tls }: Pick<ClientOptions, 'upstream' | 'tls'>) {
  return { rejectUnauthorized: true, servername: serverName(hostname), ...tls };
}

/** RFC 6066 section 3: an address is not a server name; the certificate has to contain the address. */
function serverName(hostname: string): string {
  return /[a-z]/i.test(hostname) && !hostname.includes(':') ? hostname : '';
}

/** PEM texts: authorities in place of the system's, and a client certificate with its key. */
export interface UpstreamCertificates {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** TLS settings of the client; `use` applies to every connection that is opened afterwards. */
export class UpstreamTls {
  secureContext: NonNullable<ClientOptions['tls']>['secureContext'];
  declare readonly servername?: string;

  constructor(serverName: string | undefined) {
    if (serverName !== undefined) this.servername = serverName;
  }

  /** One context for all connections: a context for each would parse the authorities each time. */
  use({ ca, cert, key }: UpstreamCertificates): void {
    this.secureContext = createSecureContext({
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert, key }),
    });
  }
}
