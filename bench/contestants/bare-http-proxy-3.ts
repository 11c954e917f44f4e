/** http-proxy-3 with a keep-alive agent and nothing else: the peer that most Node teams would start from. */
import http from 'node:http';
import { createProxyServer } from 'http-proxy-3';

const target = process.argv[2] as string;
const proxy = createProxyServer({ target, agent: new http.Agent({ keepAlive: true, maxSockets: 256 }) });
proxy.on('error', (_fault, _request, response) => response.destroy());
const server = http.createServer((request, response) => proxy.web(request, response));
server.listen(0, '127.0.0.1', () => {
  console.log(`listening on ${(server.address() as { port: number }).port}`);
});
