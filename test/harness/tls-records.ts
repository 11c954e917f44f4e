import { createCipheriv, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { setImmediate as nextTick } from 'node:timers/promises';
import { type ConnectionOptions, connect } from 'node:tls';

/** Types of a TLS record (RFC 8446 section 5.1). */
export const recordTypes = { handshake: 22, data: 23 } as const;

/** A TLS connection after its handshake, on which a test writes records of its own. */
export interface RecordClient {
  readonly raw: Socket;
  /** The next record; records must be sent in the order in which they were made. */
  record(type: number, octets: string | Buffer): Buffer;
  /** TLS 1.3: a KeyUpdate that asks for none (RFC 8446 section 4.6.3). */
  keyUpdate(): Buffer;
}

interface Keys {
  readonly key: Buffer;
  readonly iv: Buffer;
  sequence: bigint;
}

export async function openRecordClient(
  port: number,
  version: 'TLSv1.2' | 'TLSv1.3',
  options: ConnectionOptions = {},
): Promise<RecordClient> {
  const raw = connectTcp({ port, host: '127.0.0.1', noDelay: true });
  raw.on('error', () => {});
  let received = Buffer.alloc(0);
  const bridge = new Duplex({ read() {}, write: (chunk, _, done) => void raw.write(chunk, done) });
  const take = (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    bridge.push(chunk);
  };
  raw.on('data', take);
  const socket = connect({
    ...{ socket: bridge, rejectUnauthorized: false, minVersion: version, maxVersion: version },
    ciphers: version === 'TLSv1.3' ? 'TLS_AES_128_GCM_SHA256' : 'ECDHE-ECDSA-AES128-GCM-SHA256',
    ...options,
  });
  const secrets: Record<string, readonly Buffer[]> = {};
  socket.on('keylog', (line) => {
    const [name = '', ...values] = String(line).trim().split(' ');
    secrets[name] = values.map((value) => Buffer.from(value, 'hex'));
  });
  await once(socket, 'secureConnect');
  // The last octets of the client leave in the next tick.
  await nextTick();
  raw.off('data', take);
  if (version === 'TLSv1.3') return client13(raw, secrets.CLIENT_TRAFFIC_SECRET_0?.[1] as Buffer);
  const [random, master] = secrets.CLIENT_RANDOM as readonly [Buffer, Buffer];
  return client12(raw, master, Buffer.concat([received.subarray(11, 43), random]));
}

function client13(raw: Socket, first: Buffer): RecordClient {
  let secret = first;
  const keysOf = (): Keys => ({
    key: expandLabel(secret, 'key', 16),
    iv: expandLabel(secret, 'iv', 12),
    sequence: 0n,
  });
  let keys = keysOf();
  const record = (type: number, octets: string | Buffer) => {
    const text = Buffer.concat([Buffer.from(octets), Buffer.of(type)]);
    const head = headOf(recordTypes.data, text.length + 16);
    const number = numberOf(keys);
    const nonce = keys.iv.map((octet, i) => octet ^ (i < 4 ? 0 : (number[i - 4] as number)));
    return Buffer.concat([head, seal(keys.key, nonce, head, text)]);
  };
  return {
    raw,
    record,
    keyUpdate() {
      const update = record(recordTypes.handshake, Buffer.of(24, 0, 0, 1, 0));
      secret = expandLabel(secret, 'traffic upd', 32);
      keys = keysOf();
      return update;
    },
  };
}

/** RFC 5288. */
function client12(raw: Socket, master: Buffer, seed: Buffer): RecordClient {
  const block = expand12(master, Buffer.concat([Buffer.from('key expansion'), seed]), 40);
  // The Finished of the handshake was the first record.
  const keys: Keys = { key: block.subarray(0, 16), iv: block.subarray(32, 36), sequence: 1n };
  return {
    raw,
    record(type, octets) {
      const text = Buffer.from(octets);
      const number = numberOf(keys);
      const known = Buffer.concat([number, headOf(type, text.length)]);
      const sealed = seal(keys.key, Buffer.concat([keys.iv, number]), known, text);
      return Buffer.concat([headOf(type, sealed.length + 8), number, sealed]);
    },
    keyUpdate() {
      throw new TypeError('TLS 1.2 has no KeyUpdate');
    },
  };
}

const headOf = (type: number, length: number) => Buffer.of(type, 3, 3, length >> 8, length & 0xff);

function numberOf(keys: Keys): Buffer {
  const number = Buffer.alloc(8);
  number.writeBigUInt64BE(keys.sequence);
  keys.sequence += 1n;
  return number;
}

function seal(key: Buffer, nonce: Uint8Array, known: Buffer, text: Buffer): Buffer {
  const cipher = createCipheriv('aes-128-gcm', key, nonce).setAAD(known);
  return Buffer.concat([cipher.update(text), cipher.final(), cipher.getAuthTag()]);
}

const hmac = (key: Buffer, text: Buffer) => createHmac('sha256', key).update(text).digest();

/** RFC 8446 section 7.1, for at most 32 octets. */
function expandLabel(secret: Buffer, name: string, length: number): Buffer {
  const label = Buffer.from(`tls13 ${name}`);
  return hmac(secret, Buffer.concat([Buffer.of(0, length, label.length), label, Buffer.of(0, 1)])).subarray(
    0,
    length,
  );
}

/** RFC 5246 section 5. */
function expand12(secret: Buffer, seed: Buffer, length: number): Buffer {
  let step = seed;
  let octets = Buffer.alloc(0);
  while (octets.length < length) {
    step = hmac(secret, step);
    octets = Buffer.concat([octets, hmac(secret, Buffer.concat([step, seed]))]);
  }
  return octets.subarray(0, length);
}
