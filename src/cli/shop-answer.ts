import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ResponseParser, responseHeadBytes } from '../upstream/response-parser.ts';

interface ShopAddress {
  readonly isTls: boolean;
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

/** The address of a URL. */
export function addressOf({ protocol, hostname, port }: URL): ShopAddress {
  const isTls = protocol === 'https:';
  return { isTls, host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || (isTls ? 443 : 80)) };
}

const mostBytes = 1024 * 1024;

/**
 * Reads answers of the shop with the proxy's own parser. Returns a line for each path whose answer the proxy would replace by
 * 502; empty: all answers are accepted, or none came. An HTTP client would hide the exact bytes.
 */
export async function findRefusedAnswers(address: ShopAddress, paths: readonly string[], timeoutMs: number) {
  const found: string[] = [];
  for (const path of paths) {
    const fault = await faultOfAnswer(address, path, timeoutMs);
    if (fault !== undefined) found.push(`GET ${path}: shopward answers 502 instead: ${fault}`);
  }
  return found;
}

/** Undefined: the parser accepts the answer, or the part that arrives in time. */
function faultOfAnswer(
  { isTls, host, port }: ShopAddress,
  path: string,
  timeoutMs: number,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const parser = new ResponseParser(responseHeadBytes);
    parser.begin(false);
    let bytes = 0;
    let text = '';
    // The proxy checks the certificate when it connects. This probe checks only the form of the answer and sends no secret.
    const socket = isTls
      ? connectTls({ host, port, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
      : connectTcp({ host, port });
    const end = () => {
      clearTimeout(timer);
      socket.destroy();
      const { fault } = parser;
      parser.free();
      const [head = ''] = text.split('\r\n\r\n', 1);
      const hasBareLf = fault !== undefined && /(?<!\r)\n/.test(head);
      resolve(hasBareLf ? 'a line of its head ends with LF alone, not with CR LF' : fault?.message);
    };
    const timer = setTimeout(end, timeoutMs);
    const name = host.includes(':') ? `[${host}]` : host;
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${name}:${port}\r\nAccept: */*\r\nUser-Agent: shopward\r\nConnection: close\r\n\r\n`,
    );
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (text.length < responseHeadBytes) text += chunk.toString('latin1');
      parser.read(chunk, chunk.length);
      if (parser.fault !== undefined || parser.isComplete || bytes > mostBytes) end();
    });
    socket.once('close', end);
    socket.once('error', end);
  });
}

/** Whether a connection can be opened. */
export async function isReachable({ host, port }: ShopAddress, timeoutMs: number): Promise<boolean> {
  const socket = connectTcp({ host, port });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(timeoutMs) });
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
