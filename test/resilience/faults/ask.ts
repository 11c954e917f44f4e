import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';

export interface Question {
  readonly method: string;
  readonly path: string;
  readonly fields?: Readonly<Record<string, string>>;
  readonly body?: object;
}

export interface Seen {
  /** Status, code of an error, and what else stands out: `200 tagged`, `502 upstream-unreachable`, `cut`, `hang`. */
  readonly words: string;
  readonly tag: string | undefined;
}

/** A client that waits longer reports `hang`. */
const patienceMs = 30_000;

/** Sends a request and returns what the client sees. Without `kept` it opens a new connection. */
export function ask(port: number, question: Question, kept?: Agent): Promise<Seen> {
  const { method, path, fields = {}, body } = question;
  return new Promise((resolve) => {
    const end = (words: string, tag?: string) => resolve({ words, tag });
    const text = body === undefined ? '' : JSON.stringify(body);
    const type =
      body === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': text.length };
    const agent = kept ?? new Agent({ keepAlive: false });
    const sent = httpRequest(
      { host: '127.0.0.1', port, method, path, agent, headers: { ...fields, ...type } },
      (response) => read(response, path, end),
    );
    sent.setTimeout(patienceMs, () => {
      end('hang');
      sent.destroy();
    });
    sent.on('error', () => end('no answer'));
    sent.end(text);
  });
}

function read(response: IncomingMessage, path: string, end: (words: string, tag?: string) => void): void {
  let text = '';
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  response.on('error', () => end('cut'));
  response.on('end', () => {
    if (!response.complete) return end('cut');
    const { status, code, isReadable, id } = readDocument(response, text);
    const words = [
      String(status),
      ...(code === undefined ? [] : [code]),
      ...(response.headers.etag === undefined ? [] : ['tagged']),
      ...(isReadable ? [] : ['unreadable']),
      // The answer to another request.
      ...(id !== undefined && !path.includes(`/${id}`) ? ['FOREIGN'] : []),
    ];
    end(words.join(' '), response.headers.etag);
  });
}

function readDocument(response: IncomingMessage, text: string) {
  const status = response.statusCode ?? 0;
  try {
    const document = text === '' ? {} : JSON.parse(text);
    const code: string | undefined = document.errors?.[0]?.code;
    const id: string | undefined = document.data?.id ?? undefined;
    return { status, code, isReadable: true, id };
  } catch {
    return { status, code: undefined, isReadable: false, id: undefined };
  }
}
