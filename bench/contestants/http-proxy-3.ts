/**
 * http-proxy-3 and nothing else, the peer that most Node teams would start from. `defaults`: with no option but the
 * target, which opens a connection to the upstream for every request. `bare`: with a keep-alive agent. `tuned`: that, and
 * the two options that take the request target as it is.
 */
import http from 'node:http';
import { createProxyServer } from 'http-proxy-3';

const [, , target = '', kind = 'bare'] = process.argv;
const agent = new http.Agent({ keepAlive: true, maxSockets: 256 });
const options = { defaults: {}, bare: { agent }, tuned: { agent, toProxy: true, prependPath: false } }[kind];
const proxy = createProxyServer({ target, ...options });
proxy.on('error', (_fault, _request, response) => response.destroy());
const server = http.createServer((request, response) => proxy.web(request, response));
server.listen(0, '127.0.0.1', () => {
  console.log(`listening on ${(server.address() as { port: number }).port}`);
});
