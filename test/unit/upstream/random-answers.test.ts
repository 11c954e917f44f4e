import { createServer } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ForwardingFront, startFront } from '../../harness/forwarding-front.ts';
import { listen } from '../../harness/listen.ts';
import { exchangeRaw, openRawConnection, type RawResponse } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';
import { isBodiless, isNeverWhole, play, scriptArbitrary, type UpstreamScript } from './upstream-script.ts';

/** What a client saw. `broken`: a 502, or an answer that is visibly incomplete. */
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
  readonly front: ForwardingFront;
  see(script: UpstreamScript): Promise<Seen>;
  close(): Promise<void>;
}

async function startStage(): Promise<Stage> {
  let script: UpstreamScript | undefined;
  const server = createServer({ noDelay: true }, (socket) => {
    let received = '';
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      if (!/\r\n\r\n(a=1)?$/.test(received) || (received.startsWith('POST') && !received.endsWith('a=1')))
        return;
      const isPlain = received.startsWith('GET /plain ');
      received = '';
      if (isPlain) socket.write(answer('plain'));
      else if (script !== undefined) void play(script, socket);
    });
  });
  const { port, close } = await listen(server);
  const front = await startFront({ upstreamPort: port });
  return {
    front,
    async see(next) {
      script = next;
      return seeAnswer(front.port, next.method);
    },
    async close() {
      await front.close();
      await close();
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

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage.close());

/** Whether exactly one reading of the answer is correct. A reset may discard bytes; HTTP/1.0 has no chunks. */
function isPlain({ damage, framing, ending, version }: UpstreamScript): boolean {
  const isFramedAsVersion = framing !== 'chunks' || version === '1.1';
  return damage === undefined && framing !== 'both' && ending !== 'reset' && isFramedAsVersion;
}

/** Surplus bytes are dropped, unless the end of the connection ends the body. */
function bodyOf(script: UpstreamScript): string {
  const body = script.body.join('');
  if (isBodiless(script)) return '';
  if (script.framing === 'too short') return body.slice(0, -1);
  if (script.framing === 'too long') return body + script.extra.slice(0, 1);
  return script.framing === 'end' ? body + script.extra : body;
}

it('gives the client the answer or an error, and the next client its own answer', async () => {
  let whole = 0;
  await fc.assert(
    fc.asyncProperty(scriptArbitrary, async (script) => {
      const seen = await stage.see(script);
      const next = await exchangeRaw(stage.front.port, plain);
      expect([next.status, next.body.toString('latin1')]).toEqual([200, 'plain']);
      if (isNeverWhole(script)) expect(seen).toBe('broken');
      else if (isPlain(script)) {
        const { status, reason } = script;
        const interim = script.interim.filter((one) => one !== 100);
        expect(seen).toMatchObject({ status, reason, interim, body: bodyOf(script) });
        whole += 1;
      }
    }),
    { numRuns: 120 },
  );
  expect(whole).toBeGreaterThan(20);
});
