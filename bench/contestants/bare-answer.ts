/** A bare node:http server that writes the bytes of one answer, given as JSON, to every request. */
import { readFileSync } from 'node:fs';
import http from 'node:http';

const { status, fields, body } = JSON.parse(readFileSync(process.argv[2] as string, 'utf8'));
const server = http.createServer((_, response) => {
  response.writeHead(status, fields);
  response.end(body, 'latin1');
});
server.listen(0, '127.0.0.1', () => {
  console.log(`listening on ${(server.address() as { port: number }).port}`);
});
