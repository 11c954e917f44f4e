/** A fast upstream for machines without nginx: answers from memory; each path has a size of its own. */
import http from 'node:http';
import { upstreamBodies } from '../upstream-bodies.ts';

const bodies = new Map(Object.entries(upstreamBodies).map(([path, text]) => [path, Buffer.from(text)]));
const server = http.createServer((request, response) => {
  request.resume();
  const body = bodies.get((request.url ?? '').split('?', 1)[0] as string) ?? bodies.get('/small');
  response.writeHead(200, {
    'Content-Type': 'application/vnd.api+json',
    'Content-Length': body?.length ?? 0,
  });
  response.end(body);
});
server.listen(0, '127.0.0.1', () => {
  console.log(`listening on ${(server.address() as { port: number }).port}`);
});
