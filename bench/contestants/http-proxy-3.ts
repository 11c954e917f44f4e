/**
 * http-proxy-3 alone, which most Node teams would start with. `defaults`: only the target is set, so every request opens a
 * connection to the upstream. `bare`: with a keep-alive agent. `tuned`: also with the two options that pass on the request
 * target unchanged.
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
