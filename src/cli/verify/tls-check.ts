import { connect } from 'node:tls';
import { type Check, createCheck } from './check.ts';
import { caOf, type Deployment } from './probe-client.ts';

export interface TlsFinding {
  readonly check: Check;
  /** Whether what is said over this connection stays between the two. */
  readonly isTrusted: boolean;
}

const soonMs = 14 * 86_400_000;

/** Looks at certificate and protocol version of the deployment; undefined over plain HTTP. */
export async function checkTls(
  { scheme, host, port }: Deployment,
  ca: string | undefined,
  timeoutMs: number,
  now: number,
): Promise<TlsFinding | undefined> {
  if (scheme !== 'https') return undefined;
  const name = `${host}:${port}`;
  const expected = 'a certificate that is trusted, for this host, for two weeks more';
  return new Promise((resolve) => {
    const isName = !/^[\d.]+$|:/.test(host);
    const trusted = caOf(ca);
    const socket = connect({
      host,
      port,
      ...(isName && { servername: host }),
      ...(trusted && { ca: trusted }),
      rejectUnauthorized: false,
      timeout: timeoutMs,
    });
    const end = (isTrusted: boolean, isOk: boolean, got: string, advice?: string) => {
      socket.destroy();
      resolve({ isTrusted, check: createCheck('tls', name, isOk, expected, got, advice) });
    };
    socket.once('secureConnect', () => {
      const until = Date.parse(socket.getPeerCertificate().valid_to);
      const got = `${socket.getProtocol()}, valid until ${new Date(until).toISOString().slice(0, 10)}`;
      if (!socket.authorized) {
        const advice = 'clients refuse it; a token is not sent. --ca FILE names an authority of your own';
        end(false, false, `${got}, ${socket.authorizationError}`, advice);
      } else end(true, until - now > soonMs, got, 'renew the certificate');
    });
    socket.once('timeout', () => end(false, false, 'no answer in time'));
    socket.once('error', (fault: NodeJS.ErrnoException) => end(false, false, fault.code ?? fault.message));
  });
}
