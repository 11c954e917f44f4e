import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { engines, type ForwardingFront, startFront } from '../../harness/forwarding-front.ts';
import { exchangeRaw, openRawConnection, type RawResponse } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';
import { isNeverWhole, play, saysMore, scriptArbitrary, type UpstreamScript } from './upstream-script.ts';

/** What a client saw; `broken`: our 502, or an answer that shows that it is not whole. */
type Seen =
  | 'broken'
  | {
      readonly interim: readonly number[];
      readonly status: number;
      readonly reason: string;
      readonly fields: readonly string[];
      readonly body: string;
    };

interface Stage {
  readonly name: string;
  readonly front: ForwardingFront;
  see(script: UpstreamScript): Promise<Seen>;
  close(): Promise<void>;
}

async function startStage({ name, createEngine }: (typeof engines)[number]): Promise<Stage> {
  let script: UpstreamScript | undefined;
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    let received = '';
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      if (!/\r\n\r\n(a=1)?$/.test(received) || (received.startsWith('POST') && !received.endsWith('a=1')))
        return;
      const isPlain = received.startsWith('GET /plain ');
      received = '';
      if (isPlain) socket.write(answer('plain'));
      else if (script !== undefined) void play(script, socket);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const front = await startFront({ createEngine, upstreamPort: (server.address() as AddressInfo).port });
  return {
    name,
    front,
    async see(next) {
      script = next;
      return seeAnswer(front.port, next.method);
    },
    async close() {
      await front.close();
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

async function seeAnswer(port: number, method: string): Promise<Seen> {
  const client = await openRawConnection(port);
  const body = method === 'POST' ? 'Content-Length: 3\r\n\r\na=1' : '\r\n';
  await client.write(`${method} /script HTTP/1.1\r\nHost: s\r\n${body}`);
  const interim: number[] = [];
  try {
    for (;;) {
      const response = await client.readResponse(method);
      if (response.status >= 200) return seenOf(response, interim);
      interim.push(response.status);
    }
  } catch (error) {
    if (String(error).includes('connection closed')) return 'broken';
    throw error;
  } finally {
    client.close();
  }
}

function seenOf(response: RawResponse, interim: number[]): Seen {
  if (response.status === 502 || !response.complete) return 'broken';
  const fields: string[] = [];
  for (let i = 0; i < response.rawFields.length; i += 2) {
    const [name, value] = response.rawFields.slice(i, i + 2) as [string, string];
    if (!['Date', 'Connection', 'Keep-Alive', 'Transfer-Encoding'].includes(name))
      fields.push(`${name}: ${value}`);
  }
  const { status, reason } = response;
  return { interim, status, reason, fields, body: response.body.toString('latin1') };
}

const plain = 'GET /plain HTTP/1.1\r\nHost: s\r\n\r\n';

let stages: readonly Stage[];
beforeAll(async () => {
  stages = await Promise.all(engines.map(startStage));
});
afterAll(async () => {
  for (const stage of stages) await stage.close();
});

/** Where engines differ, and may: each of these refuses what the others may pass on. */
function mayRefuse(name: string, script: UpstreamScript): boolean {
  // The reset may overtake the answer.
  if (script.ending === 'reset') return true;
  // Octets after the end are an error, even in the read that holds the end.
  if (name === 'http-proxy-3') return saysMore(script);
  // Another transfer coding than `chunked`.
  return script.damage !== undefined;
}

function comparable(what: Seen, script: UpstreamScript): Seen {
  if (what === 'broken' || script.damage === undefined) return what;
  return { ...what, reason: script.reason };
}

it('every engine shows a client the same, and the next client its own answer', async () => {
  let whole = 0;
  await fc.assert(
    fc.asyncProperty(scriptArbitrary, async (script) => {
      const seen = await Promise.all(
        stages.map(async (stage) => [stage.name, comparable(await stage.see(script), script)] as const),
      );
      const next = await Promise.all(stages.map(({ front }) => exchangeRaw(front.port, plain)));
      expect(next.map(({ status, body }) => [status, body.toString('latin1')])).toEqual(
        stages.map(() => [200, 'plain']),
      );
      if (isNeverWhole(script)) expect(seen.map(([, what]) => what)).toEqual(stages.map(() => 'broken'));
      const answers = seen.filter(([name, what]) => what !== 'broken' || !mayRefuse(name, script));
      for (const [name, what] of answers) expect([name, what]).toEqual([name, answers[0]?.[1]]);
      if (answers.length > 0 && answers[0]?.[1] !== 'broken') whole += 1;
    }),
    { numRuns: 300 },
  );
  expect(whole).toBeGreaterThan(60);
});
