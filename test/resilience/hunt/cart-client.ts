import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';

export interface CartRequest {
  readonly port: number;
  readonly method: string;
  readonly path: string;
  readonly fields?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** The client leaves after this many milliseconds. */
  readonly leaveAfterMs?: number;
}

/** `status` 0: no whole answer came. */
export interface CartAnswer {
  readonly status: number;
  readonly tag: string | undefined;
  /** State of the one cart in the document. */
  readonly version: number | undefined;
  readonly cart: string | undefined;
  /** State of each cart of a list. */
  readonly versions?: Readonly<Record<string, number>>;
  readonly code: string | undefined;
}

const silence: CartAnswer = {
  status: 0,
  tag: undefined,
  version: undefined,
  cart: undefined,
  code: undefined,
};
const patienceMs = 8_000;

/** One client with its own connections and its own user. */
export function createCartClient(token: string) {
  const agent = new Agent({ keepAlive: true });
  const send = ({ port, method, path, fields = {}, body, leaveAfterMs }: CartRequest): Promise<CartAnswer> =>
    new Promise((resolve) => {
      const text = body === undefined ? '' : JSON.stringify(body);
      const type =
        body === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': text.length };
      const headers = { Authorization: `Bearer ${token}`, ...fields, ...type };
      const sent = httpRequest({ host: '127.0.0.1', port, method, path, agent, headers }, (response) =>
        readAnswer(response, resolve),
      );
      sent.setTimeout(leaveAfterMs ?? patienceMs, () => sent.destroy());
      sent.on('error', ({ code }: NodeJS.ErrnoException) =>
        resolve(code === 'ECONNREFUSED' ? { ...silence, code } : silence),
      );
      sent.on('close', () => resolve(silence));
      sent.end(text);
    });
  return { send, close: () => agent.destroy() };
}

function readAnswer(response: IncomingMessage, resolve: (answer: CartAnswer) => void): void {
  let text = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  response.on('error', () => resolve(silence));
  response.on('end', () => {
    if (!response.complete) return resolve(silence);
    const document = text === '' ? {} : JSON.parse(text);
    const all: ReadonlyArray<{ id: string; attributes: { version: number } }> = Array.isArray(document.data)
      ? document.data
      : [];
    const data = Array.isArray(document.data) ? all[0] : document.data;
    resolve({
      status: response.statusCode ?? 0,
      tag: response.headers.etag,
      version: data?.attributes?.version,
      cart: data?.id,
      versions: Object.fromEntries(all.map(({ id, attributes }) => [id, attributes.version])),
      code: document.errors?.[0]?.code,
    });
  });
}
