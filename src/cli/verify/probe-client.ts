import http from 'node:http';
import https from 'node:https';
import { rootCertificates } from 'node:tls';

/** The address of the deployment, and the prefix of all paths of its API. */
export interface Deployment {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  /** Empty, or with a leading and without a trailing slash. */
  readonly prefix: string;
}

/** Exported for its tests. */
export interface Probe {
  readonly method: string;
  /** Sent byte for byte after the prefix. */
  readonly path: string;
  readonly fields?: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body?: string;
}

export interface Reply {
  /** 0: there was no answer. */
  readonly status: number;
  readonly fields: http.IncomingHttpHeaders;
  /** At most 4 MiB. */
  readonly body: string;
  /** For people: why there was no answer. */
  readonly fault?: string;
}

export interface ProbeClient {
  /** Sends a request, without following redirects or retrying. Never rejects. */
  ask(probe: Probe): Promise<Reply>;
  close(): void;
}

interface ProbeClientOptions {
  readonly deployment: Deployment;
  /** Milliseconds of one request, to the end of its response. */
  readonly timeoutMs: number;
  /** Aborts every request when the time of the whole run is over. */
  readonly deadline: AbortSignal;
  /** PEM of further authorities. */
  readonly ca?: string | undefined;
  readonly userAgent: string;
}

const maxBodyBytes = 4 * 1024 * 1024;

export function createProbeClient(options: ProbeClientOptions): ProbeClient {
  const { deployment, timeoutMs, deadline, ca } = options;
  const isTls = deployment.scheme === 'https';
  // Node's option `ca` replaces its own authorities, so these are listed as well.
  const trusted = ca === undefined ? undefined : [...rootCertificates, ca];
  const agent = isTls
    ? new https.Agent({ keepAlive: true, ca: trusted })
    : new http.Agent({ keepAlive: true });
  return {
    ask({ method, path, fields = {}, body }) {
      if (deadline.aborted) return Promise.resolve(noReply('no time left'));
      const signal = AbortSignal.any([deadline, AbortSignal.timeout(timeoutMs)]);
      return new Promise((resolve) => {
        const fail = (fault: NodeJS.ErrnoException) => resolve(noReply(faultText(fault, deadline)));
        const request = (isTls ? https : http).request(
          {
            host: deployment.host,
            port: deployment.port,
            agent,
            method,
            path: deployment.prefix + path,
            signal,
            headers: { ...headersOf(body), 'User-Agent': options.userAgent, ...fields },
          },
          (response) => {
            const chunks: Buffer[] = [];
            let bytes = 0;
            const finish = () =>
              resolve({
                status: response.statusCode ?? 0,
                fields: response.headers,
                body: Buffer.concat(chunks).toString('utf8'),
              });
            response.on('data', (chunk: Buffer) => {
              bytes += chunk.length;
              chunks.push(chunk);
              if (bytes > maxBodyBytes) {
                finish();
                request.destroy();
              }
            });
            response.on('end', finish);
            response.on('error', fail);
          },
        );
        request.on('error', fail);
        request.end(body);
      });
    },
    close: () => agent.destroy(),
  };
}

function headersOf(body: string | undefined) {
  return {
    Accept: 'application/vnd.api+json, application/json;q=0.9',
    'Accept-Encoding': 'identity',
    ...(body !== undefined && {
      'Content-Type': 'application/vnd.api+json',
      'Content-Length': String(Buffer.byteLength(body)),
    }),
  };
}

function noReply(fault: string): Reply {
  return { status: 0, fields: {}, body: '', fault };
}

function faultText(fault: NodeJS.ErrnoException, deadline: AbortSignal): string {
  if (deadline.aborted) return 'no time left';
  if (fault.name === 'AbortError' || fault.name === 'TimeoutError') return 'no answer in time';
  return faultTexts[fault.code ?? ''] ?? fault.code ?? fault.message;
}

const faultTexts: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'no such host',
  EPROTO: 'no TLS there',
};
