import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { version } from '../command-io.ts';

/** The address of the deployment, and the prefix of all paths of its API. */
export interface Deployment {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  /** Empty, or with a leading and without a trailing slash. */
  readonly prefix: string;
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

const maxBodyBytes = 4 * 1024 * 1024;

export type ProbeClient = ReturnType<typeof createProbeClient>;

/** `timeoutMs`: of one request, to the end of its response. `deadline` aborts every request. */
export function createProbeClient(deployment: Deployment, timeoutMs: number, deadline: AbortSignal) {
  const { scheme, host, port, prefix } = deployment;
  const { Agent, get } = scheme === 'https' ? https : http;
  const agent = new Agent({ keepAlive: true });
  const read = async (path: string, fields: Readonly<Record<string, string>>, signal: AbortSignal) => {
    const headers = { ...commonFields, ...fields };
    const request = get({ host, port, agent, path: prefix + path, signal, headers });
    // For errors after the head, which the response has, too.
    request.on('error', () => {});
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxBodyBytes) break;
    }
    const body = Buffer.concat(chunks).toString('utf8');
    return { status: response.statusCode ?? 0, fields: response.headers, body };
  };
  return {
    /** Sends a GET, its path byte for byte after the prefix, without following redirects or retrying. Never rejects. */
    async ask(path: string, fields: Readonly<Record<string, string>> = {}): Promise<Reply> {
      const signal = AbortSignal.any([deadline, AbortSignal.timeout(timeoutMs)]);
      try {
        return await read(path, fields, signal);
      } catch (fault) {
        const why = signal.aborted ? 'no answer in time' : faultText(fault as NodeJS.ErrnoException);
        return { status: 0, fields: {}, body: '', fault: deadline.aborted ? 'no time left' : why };
      }
    },
    close: () => agent.destroy(),
  };
}

const commonFields = {
  Accept: 'application/vnd.api+json, application/json;q=0.9',
  'Accept-Encoding': 'identity',
  'User-Agent': `shopward-verify/${version}`,
};

function faultText({ code, message }: NodeJS.ErrnoException): string {
  return faultTexts[code ?? ''] ?? code ?? message;
}

const faultTexts: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'no such host',
  EPROTO: 'the server speaks no TLS',
};
