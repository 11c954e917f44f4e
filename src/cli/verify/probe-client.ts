import http from 'node:http';
import https from 'node:https';

/** The address of the deployment, and the prefix of all paths of its API. */
export interface Deployment {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  /** Empty, or with a leading and without a trailing slash. */
  readonly prefix: string;
}

interface Probe {
  /** Sent byte for byte after the prefix. */
  readonly path: string;
  readonly fields?: Readonly<Record<string, string>>;
}

export interface Reply {
  /** 0: there was no answer. */
  readonly status: number;
  readonly fields: http.IncomingHttpHeaders;
  /** Cut after 4 MiB. */
  readonly body: string;
  /** For people: why there was no answer. */
  readonly fault?: string;
}

export interface ProbeClient {
  /** Sends a GET, without following redirects or retrying. Never rejects. */
  ask(probe: Probe): Promise<Reply>;
  close(): void;
}

interface ProbeClientOptions {
  readonly deployment: Deployment;
  /** Milliseconds of one request, to the end of its response. */
  readonly timeoutMs: number;
  /** Aborts every request when the time of the whole run is over. */
  readonly deadline: AbortSignal;
  readonly userAgent: string;
}

const maxBodyBytes = 4 * 1024 * 1024;

export function createProbeClient(options: ProbeClientOptions): ProbeClient {
  const { deployment, timeoutMs, deadline } = options;
  const isTls = deployment.scheme === 'https';
  const agent = new (isTls ? https : http).Agent({ keepAlive: true });
  return {
    ask({ path, fields = {} }) {
      if (deadline.aborted) return Promise.resolve(noReply('no time left'));
      const signal = AbortSignal.any([deadline, AbortSignal.timeout(timeoutMs)]);
      return new Promise((resolve) => {
        const fail = (fault: NodeJS.ErrnoException) => resolve(noReply(faultText(fault, deadline)));
        const request = (isTls ? https : http).get(
          {
            host: deployment.host,
            port: deployment.port,
            agent,
            path: deployment.prefix + path,
            signal,
            headers: { ...commonFields, 'User-Agent': options.userAgent, ...fields },
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
      });
    },
    close: () => agent.destroy(),
  };
}

const commonFields = {
  Accept: 'application/vnd.api+json, application/json;q=0.9',
  'Accept-Encoding': 'identity',
};

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
  EPROTO: 'the server speaks no TLS',
};
