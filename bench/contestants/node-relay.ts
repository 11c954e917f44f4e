/** A relay on node:http: the least that a proxy in Node can do, without any checks. */
import http from 'node:http';

const { hostname, port } = new URL(process.argv[2] as string);
const agent = new http.Agent({ keepAlive: true, maxSockets: 256 });
const server = http.createServer((request, response) => {
  const { method, url: path, headers } = request;
  const upstream = http.request(
    { hostname, port, agent, method, path, headers } as http.RequestOptions,
    (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    },
  );
  upstream.on('error', () => response.destroy());
  request.pipe(upstream);
});
server.listen(0, '127.0.0.1', () => {
  console.log(`listening on ${(server.address() as { port: number }).port}`);
});
