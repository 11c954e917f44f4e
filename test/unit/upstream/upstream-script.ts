import type { Socket } from 'node:net';
import { setImmediate as nextIteration } from 'node:timers/promises';
import fc from 'fast-check';

/** The answer of an upstream to one request, and how it is written. */
export interface UpstreamScript {
  readonly method: 'GET' | 'HEAD' | 'POST';
  readonly interim: readonly number[];
  readonly version: '1.0' | '1.1';
  readonly status: number;
  readonly reason: string;
  readonly fields: readonly (readonly [string, string])[];
  readonly framing: 'length' | 'too short' | 'too long' | 'chunks' | 'both' | 'end';
  /** The chunks of the body. */
  readonly body: readonly string[];
  /** Surplus bytes at the end of the last write. */
  readonly extra: string;
  /** Positions at which a write ends, in thousandths of the answer. */
  readonly cuts: readonly number[];
  readonly ending: 'keep' | 'close' | 'reset';
  /** Replaces one octet of the head. */
  readonly damage: { readonly at: number; readonly octet: string } | undefined;
}

const fieldArbitrary = fc.tuple(
  fc.constantFrom('ETag', 'X-A', 'x-a', 'Set-Cookie', 'Vary', 'Content-Type', 'Server', 'Upgrade', 'Trailer'),
  fc.constantFrom('', 'a', '"1"', 'caf\xe9', 'a, b', 'a \t', '\xa0', 'h2c', 'x'.repeat(300)),
);
const connectionArbitrary = fc.tuple(
  fc.constantFrom('Connection', 'Keep-Alive'),
  fc.constantFrom('close', 'keep-alive', 'x-a', 'timeout=0', 'timeout=1', 'timeout=9', 'Upgrade'),
);

export const scriptArbitrary: fc.Arbitrary<UpstreamScript> = fc.record({
  method: fc.constantFrom('GET', 'GET', 'HEAD', 'POST'),
  interim: fc.oneof(
    { weight: 4, arbitrary: fc.constant([]) },
    fc.array(fc.constantFrom(100, 102, 103), { maxLength: 3 }),
  ),
  version: fc.constantFrom('1.1', '1.1', '1.1', '1.0'),
  status: fc.constantFrom(200, 200, 200, 200, 200, 200, 201, 204, 206, 299, 304, 404, 500, 599, 101, 600),
  reason: fc.constantFrom('OK', '', 'A b', '\xe9t\xe9'),
  fields: fc.array(fc.oneof(fieldArbitrary, fieldArbitrary, connectionArbitrary), { maxLength: 6 }),
  framing: fc.constantFrom(
    'length',
    'length',
    'length',
    'chunks',
    'chunks',
    'chunks',
    'end',
    'end',
    'too short',
    'too long',
    'both',
  ),
  body: fc.array(fc.constantFrom('', 'a', 'bc', '\r\n\r\n', 'HTTP/1.1 200 OK\r\n', 'x'.repeat(5000)), {
    maxLength: 5,
  }),
  extra: fc.oneof(
    { weight: 5, arbitrary: fc.constant('') },
    fc.constantFrom('\r\n', 'x', 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil'),
  ),
  cuts: fc.array(fc.nat(1000), { maxLength: 6 }),
  ending: fc.constantFrom('keep', 'keep', 'keep', 'close', 'reset'),
  damage: fc.option(
    fc.record({ at: fc.nat(1000), octet: fc.constantFrom('\0', '\n', '\r', ' ', ':', 'x', '\xff') }),
    { freq: 2, nil: undefined },
  ),
}) as fc.Arbitrary<UpstreamScript>;

/** Whether the answer has no body, whatever its fields. */
export function isBodiless({ method, status }: UpstreamScript): boolean {
  return method === 'HEAD' || status === 204 || status === 304;
}

function headOf(script: UpstreamScript): string {
  const { interim, version, status, reason, fields, framing, body } = script;
  const length = body.join('').length;
  const framed = {
    length: `Content-Length: ${length}\r\n`,
    'too short': `Content-Length: ${Math.max(0, length - 1)}\r\n`,
    'too long': `Content-Length: ${length + 1}\r\n`,
    chunks: 'Transfer-Encoding: chunked\r\n',
    both: `Content-Length: ${length}\r\nTransfer-Encoding: chunked\r\n`,
    end: '',
  }[framing];
  const early = interim.map((it) => `HTTP/1.1 ${it} Early\r\nLink: </a>\r\n\r\n`).join('');
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const head = `${early}HTTP/${version} ${status} ${reason}\r\n${lines}${framed}\r\n`;
  if (script.damage === undefined) return head;
  const at = Math.floor((script.damage.at / 1001) * head.length);
  return head.slice(0, at) + script.damage.octet + head.slice(at + 1);
}

function bodyOf({ framing, body }: UpstreamScript): string {
  if (framing !== 'chunks' && framing !== 'both') return body.join('');
  const chunks = body
    .filter((part) => part !== '')
    .map((part) => `${part.length.toString(16)}\r\n${part}\r\n`);
  return `${chunks.join('')}0\r\n\r\n`;
}

/**
 * The writes of the answer. Surplus bytes come in the same write as the possible end of the answer: later bytes, after
 * the connection is used again, would be the next answer.
 */
export function writesOf(script: UpstreamScript): string[] {
  const head = headOf(script);
  const all = head + bodyOf(script) + script.extra;
  const isOneEnd = !isBodiless(script) && script.damage === undefined && script.framing !== 'too short';
  const lastCut = isOneEnd ? all.length - script.extra.length - 1 : head.indexOf('\r\n\r\n');
  const cutsAt = script.cuts
    .map((cut) => Math.floor((cut / 1000) * Math.max(0, lastCut)))
    .sort((a, b) => a - b);
  return [0, ...cutsAt].map((at, i) => all.slice(at, cutsAt[i])).filter((bit) => bit !== '');
}

/** Whether the answer is never whole: it ends too early, or a reset replaces the close that would end its body. */
export function isNeverWhole(script: UpstreamScript): boolean {
  const { status, framing, ending, extra, damage } = script;
  if (status < 200 || status > 599) return true;
  if (damage !== undefined || isBodiless(script)) return false;
  return (
    (framing === 'too long' && extra === '') ||
    framing === 'both' ||
    (framing === 'end' && ending === 'reset')
  );
}

/** The answer is complete by its framing: only then may the connection stay open. */
export function mayKeep(script: UpstreamScript): boolean {
  const isFramed =
    script.framing === 'length' || script.framing === 'chunks' || script.framing === 'too short';
  return isFramed && script.damage === undefined;
}

export async function play(script: UpstreamScript, socket: Socket): Promise<void> {
  for (const bit of writesOf(script)) {
    socket.write(bit, 'latin1');
    // Usually long enough for the other side to read it separately; no result depends on it.
    for (let i = 0; i < 3; i++) await nextIteration();
  }
  if (script.ending === 'reset') socket.resetAndDestroy();
  else if (script.ending === 'close' || !mayKeep(script)) socket.end();
}
