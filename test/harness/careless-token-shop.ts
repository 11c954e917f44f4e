import { createServer, type IncomingHttpHeaders } from 'node:http';
import { deflateRawSync, gzipSync } from 'node:zlib';
import { listen } from './listen.ts';

export interface Asked {
  readonly method: string;
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export type CarelessTokenShop = Awaited<ReturnType<typeof startCarelessTokenShop>>;

let issued = 0;

/**
 * A shop that gives a new pair of tokens to each request to its token endpoints, whatever the method, and lets the
 * client choose how the answer is encoded.
 */
export async function startCarelessTokenShop() {
  const asked: Asked[] = [];
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = await incoming.toArray();
    const { method = '', url = '', headers } = incoming;
    asked.push({ method, target: url, headers, body: Buffer.concat(chunks) });
    const { type, body } = answerTo(url, headers);
    const coding = headers['accept-encoding'] ?? '';
    const code = coding.includes('gzip') ? gzipSync : deflateRawSync;
    const isCoded = /gzip|deflate/.test(coding) || url.includes('coded');
    response.writeHead(200, {
      'Content-Type': type,
      ...(isCoded && { 'Content-Encoding': coding || 'deflate' }),
    });
    response.end(isCoded ? code(body) : body);
  });
  return { ...(await listen(server)), asked };
}

function answerTo(
  url: string,
  headers: IncomingHttpHeaders,
): { readonly type: string; readonly body: string } {
  issued += 1;
  const token = `fresh-${String(issued).padStart(6, '0')}-${'x'.repeat(20)}`;
  const query = new URLSearchParams(url.split('?')[1] ?? '');
  const pair = { access_token: 'a', token_type: 'Bearer', expires_in: 60, refresh_token: token };
  const attributes = { accessToken: 'a', tokenType: 'Bearer', expiresIn: 60, refreshToken: token };
  const isForm = url.startsWith('/token');
  const json = isForm ? pair : { data: { type: 'refresh-tokens', attributes } };
  const included = 'y'.repeat(Number(query.get('include') ?? 0));
  const text = JSON.stringify(included === '' ? json : { ...json, included });
  const type = isForm ? 'application/json' : 'application/vnd.api+json';
  const [shape] = [query.get('shape') ?? (headers.accept?.startsWith('application/xml') ? 'xml' : 'json')];
  switch (shape) {
    case 'xml':
      return { type: 'application/xml', body: `<refreshToken>${token}</refreshToken>` };
    case 'callback':
      return { type: 'text/javascript', body: `show(${text})` };
    case 'bare':
      return { type, body: JSON.stringify(token) };
    case 'other':
      return { type, body: JSON.stringify({ result: [{ 'refresh-token': token }] }) };
    case 'events':
      return { type: 'text/event-stream', body: `data: ${text}\n\n` };
    case 'utf-16':
      return { type: `${type};charset=utf-16`, body: `${Buffer.from(text, 'utf16le')}` };
    case 'none':
      return { type, body: JSON.stringify({ access_token: 'a', expires_in: 60 }) };
    case 'text':
      return { type: 'text/plain', body: 'OK' };
    case 'empty':
      return { type, body: '' };
    default:
      return { type, body: text };
  }
}
