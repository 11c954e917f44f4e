import { createServer, type Socket } from 'node:net';
import { listen } from './listen.ts';

/** One connection that the upstream accepted, with all bytes that it received. */
export interface RecordedConnection {
  readonly socket: Socket;
  /** All bytes so far, latin-1. */
  received(): string;
  /** Resolves when `received()` contains `text`; else rejects with what was received. */
  waitFor(text: string, timeoutMs?: number): Promise<string>;
  /** Resolves when the connection is closed, however it ended. */
  readonly closed: Promise<void>;
}

export interface RecordedRequest {
  /** Request line and fields, including the empty line. */
  readonly head: string;
  readonly connection: RecordedConnection;
  /** 0 for the first request of its connection. */
  readonly index: number;
}

/** Bytes to answer with (latin-1); undefined: the script itself uses the socket. */
type Answer = string | Buffer | undefined;
export type Script = (request: RecordedRequest) => Answer | Promise<Answer>;

export interface RecordingUpstream {
  readonly port: number;
  readonly connections: RecordedConnection[];
  /** Request lines in order, as a strict parser finds them in the bytes. */
  readonly requestLines: string[];
  /** All bytes of all connections. */
  bytes(): string;
  /** Number of bytes received so far. Cheap, unlike `bytes()`. */
  readonly octets: number;
  close(): Promise<void>;
  /** Called with each new connection. */
  onConnection: ((connection: RecordedConnection) => void) | undefined;
}

export interface RecordingUpstreamOptions {
  readonly host?: string;
  /** Default: any free port. `freePort()` is for tests that close the upstream and use its port afterwards. */
  readonly port?: number;
  /** Runs the script after the whole request body instead of after the head. */
  readonly answersWhole?: boolean;
}

/**
 * A raw TCP upstream that records every byte and answers from a script. It frames requests by Content-Length and
 * chunked only. Bytes after that end are the next request, so a smuggled request shows up as a request line.
 */
export async function startRecordingUpstream(
  script: Script,
  { host = '127.0.0.1', port = 0, answersWhole = false }: RecordingUpstreamOptions = {},
): Promise<RecordingUpstream> {
  const connections: RecordedConnection[] = [];
  const requestLines: string[] = [];
  let octets = 0;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    let received = '';
    let unread = '';
    let index = 0;
    let isBusy = false;
    let skip: 'none' | 'chunked' | number = 'none';
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    const connection: RecordedConnection = {
      socket,
      received: () => received,
      closed,
      waitFor: (text, timeoutMs = 60_000) => waitFor(socket, () => received, text, timeoutMs),
    };
    connections.push(connection);
    upstream.onConnection?.(connection);
    const read = async () => {
      if (isBusy) return;
      isBusy = true;
      for (;;) {
        if (skip !== 'none') {
          const length = lengthOf(skip, unread);
          if (length === undefined) break;
          unread = unread.slice(length);
          skip = 'none';
        }
        const end = unread.indexOf('\r\n\r\n');
        if (end === -1) break;
        const head = unread.slice(0, end + 4);
        if (answersWhole && lengthOf(bodyOf(head), unread.slice(end + 4)) === undefined) break;
        unread = unread.slice(end + 4);
        requestLines.push(head.slice(0, head.indexOf('\r\n')));
        skip = bodyOf(head);
        const answer = await script({ head, connection, index: index++ });
        if (answer !== undefined && socket.writable) socket.write(answer as string, 'latin1');
      }
      isBusy = false;
    };
    socket.on('data', (chunk) => {
      octets += chunk.length;
      received += chunk.toString('latin1');
      unread += chunk.toString('latin1');
      void read();
    });
    socket.on('end', () => socket.end());
    socket.on('error', () => socket.destroy());
  });
  const { port: actual, close } = await listen(server, { port, host });
  const upstream: RecordingUpstream = {
    port: actual,
    onConnection: undefined,
    connections,
    requestLines,
    get octets() {
      return octets;
    },
    bytes: () => connections.map((connection) => connection.received()).join(''),
    close,
  };
  return upstream;
}

/** A short complete answer with Content-Length. */
export function answer(body = 'ok', fields = '', status = '200 OK'): string {
  return `HTTP/1.1 ${status}\r\nContent-Length: ${Buffer.byteLength(body, 'latin1')}\r\n${fields}\r\n${body}`;
}

function bodyOf(head: string): 'none' | 'chunked' | number {
  if (/\r\ntransfer-encoding:\s*chunked\r\n/i.test(head)) return 'chunked';
  const length = /\r\ncontent-length:\s*(\d+)\r\n/i.exec(head)?.[1];
  return length === undefined || Number(length) === 0 ? 'none' : Number(length);
}

/** Length of the body at the start of `text`, in octets; undefined while it is incomplete. */
function lengthOf(body: 'none' | 'chunked' | number, text: string): number | undefined {
  if (body === 'none') return 0;
  if (body === 'chunked') return chunkedLength(text);
  return text.length >= body ? body : undefined;
}

/** Length of the chunked body at the start of `text`; undefined while it is incomplete. */
function chunkedLength(text: string): number | undefined {
  for (let at = 0; ; ) {
    const line = text.indexOf('\r\n', at);
    if (line === -1) return undefined;
    const size = Number.parseInt(text.slice(at, line), 16);
    const next = line + 2 + size + 2;
    if (text.length < next) return undefined;
    if (size === 0) return next;
    at = next;
  }
}

function waitFor(socket: Socket, received: () => string, text: string, timeoutMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const look = () => {
      if (!received().includes(text)) return;
      done();
      resolve(received());
    };
    const fail = () => {
      done();
      reject(new Error(`no ${JSON.stringify(text)} in ${JSON.stringify(received().slice(0, 500))}`));
    };
    const timer = setTimeout(fail, timeoutMs);
    const done = () => {
      clearTimeout(timer);
      socket.off('data', later).off('close', fail);
    };
    const later = () => setImmediate(look);
    socket.on('data', later).on('close', fail);
    look();
  });
}
