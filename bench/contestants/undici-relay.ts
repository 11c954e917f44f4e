/** node:http for clients and undici's `dispatch` for the upstream, without checks or configuration. */
import http, { type ServerResponse } from 'node:http';
import { Client, type Dispatcher } from 'undici';

const upstream = process.argv[2] as string;
const idle: Client[] = [];
const options = { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 };

class Relay implements Dispatcher.DispatchHandler {
  readonly #client: Client;
  readonly #response: ServerResponse;

  constructor(client: Client, response: ServerResponse) {
    this.#client = client;
    this.#response = response;
  }

  onRequestStart(): void {}

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    const fields = (controller.rawHeaders as Buffer[]).map((part) => part.toString('latin1'));
    const at = fields.indexOf('Connection');
    if (at >= 0) fields.splice(at, 2);
    this.#response.writeHead(status, fields);
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#response.write(chunk);
  }

  onResponseEnd(): void {
    idle.push(this.#client);
    this.#response.end();
  }

  onResponseError(): void {
    this.#response.destroy();
  }
}

const server = http.createServer((request, response) => {
  const { method = 'GET', url: path = '/', rawHeaders } = request;
  const client = idle.pop() ?? new Client(upstream, options);
  const headers: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name !== 'Connection') headers.push(name, rawHeaders[i + 1] as string);
  }
  const body = method === 'GET' ? null : request;
  client.dispatch({ method: method as 'GET', path, headers, body }, new Relay(client, response));
});
server.listen(0, '127.0.0.1', () => {
  console.log(`listening on ${(server.address() as { port: number }).port}`);
});
