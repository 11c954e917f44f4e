import type { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { connectionsFor } from '../../../src/app/public-port.ts';
import { networkOf, plainAddress } from '../../../src/http/peer.ts';
import { ConnectionSlots, InFlight, maxHandshakesInAll, Shares } from '../../../src/server/in-flight.ts';

describe('the network of an address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:2::6', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:db8:1:2::', '2001:db8:1:2::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
    // Networks that contain zeros.
    ['fd00::1:a:b:c:d', 'fd00:0:0:1::/64'],
    ['::4:5:6:7:8', '0:0:0:4::/64'],
    ['::3:4:5:6:192.0.2.1', '0:0:3:4::/64'],
    ['fe80::a:b:c:d%eth0', 'fe80:0:0:0::/64'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::ffff:c000:201', '192.0.2.1'],
    ['', ''],
  ])('%s counts as %s', (address, network) => {
    expect(networkOf(plainAddress(address))).toBe(network);
  });
});

it('the network does not depend on the spelling of an IPv6 address', () => {
  for (let zeros = 0; zeros < 256; zeros += 1) {
    const groups = Array.from({ length: 8 }, (_, i) => ((zeros >> i) & 1 ? '0' : `a${i}`));
    const whole = groups.join(':');
    const short = new URL(`http://[${whole}]/`).hostname.slice(1, -1);
    expect([short, networkOf(short)]).toEqual([short, networkOf(whole)]);
    expect(networkOf(whole)).toBe(`${groups.slice(0, 4).join(':')}::/64`);
  }
});

describe('shares of requests in flight', () => {
  it('limit an address and a subject to half of 8, and are given back', () => {
    const inFlight = new InFlight({ limit: 8, sharePercent: 50 });
    const slots = Array.from({ length: 6 }, () => inFlight.enter());
    expect(slots.map((slot) => slot.takeFor('192.0.2.1'))).toEqual([true, true, true, true, false, false]);
    expect(slots[4]?.takeFor('192.0.2.2')).toBe(true);
    expect(slots.map((slot) => slot.takeForSubject('a'))).toEqual([true, true, true, true, false, false]);
    for (const slot of slots) {
      slot.leave();
      slot.leave();
    }
    expect(inFlight.count).toBe(0);
    const again = Array.from({ length: 5 }, () => inFlight.enter());
    const four = [true, true, true, true, false];
    expect(again.map((slot) => slot.takeFor('192.0.2.1'))).toEqual(four);
    expect(again.map((slot) => slot.takeForSubject('a'))).toEqual(four);
  });

  it('without a request are forgotten, and no others', () => {
    const shares = new Shares(2);
    const delayed = Array.from({ length: 1100 }, (_, i) => shares.take(`kept ${i}`));
    for (let i = 0; i < 10_000; i += 1) {
      const share = shares.take(`client ${i}`);
      if (share !== undefined) shares.giveBack(share);
      // At most as many unused entries as used ones, plus the latest one.
      expect(shares.size).toBeLessThanOrEqual(2 * delayed.length + 1);
    }
    for (const [i, share] of delayed.entries()) {
      expect(shares.take(`kept ${i}`)).toBe(share);
      expect(shares.take(`kept ${i}`)).toBeUndefined();
    }
  });

  it('are at least one; 100 percent means no limit', () => {
    expect(new InFlight({ limit: 1, sharePercent: 1 }).enter().takeFor('192.0.2.1')).toBe(true);
    const open = new InFlight({ limit: 2, sharePercent: 100 });
    expect(Array.from({ length: 9 }, () => open.enter().takeFor('192.0.2.1'))).not.toContain(false);
  });

  it('the overall limit applies, too', () => {
    const inFlight = new InFlight({ limit: 2, sharePercent: 100 });
    expect(Array.from({ length: 3 }, () => inFlight.enter().isBeyond)).toEqual([false, false, true]);
  });
});

describe('connections within a limit of open files', () => {
  const upstream = { connections: 256, webSocket: false } as never;
  it.each([
    [1_048_576, 1_048_160],
    [1_024, 608],
    [256, 80],
    [60, 7],
    [1, 1],
  ])('%i files: %i', (files, connections) => {
    expect(connectionsFor(files, { upstream })).toBe(connections);
  });

  it('half as many if each may be a WebSocket', () => {
    expect(connectionsFor(10_096, { upstream: { connections: 256, webSocket: true } as never })).toBe(5_000);
  });
});

it('of 512 unfinished handshakes of all peers, one makes room for a further one after a second', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const slots = new ConnectionSlots({ limit: 10_000, sharePercent: 50, isTrusted: () => false });
  const sockets: Socket[] = [];
  const open = () => {
    const peer = sockets.length;
    const ends = { remoteAddress: `10.0.${peer >> 8}.${peer & 255}`, remotePort: 1, localPort: 2 };
    sockets.push(Object.assign(new PassThrough(), ends) as unknown as Socket);
    return slots.admit(sockets.at(-1) as Socket, true);
  };
  const closed = () => [...sockets.keys()].filter((i) => sockets[i]?.destroyed);
  for (let i = 0; i < maxHandshakesInAll; i += 1) expect(open()).toBe(true);
  vi.advanceTimersByTime(999);
  expect([open(), closed()]).toEqual([false, [512]]);
  // The first one has ended its handshake.
  slots.slotOf(sockets[0] as Socket);
  expect([open(), open(), closed()]).toEqual([true, false, [512, 514]]);
  vi.advanceTimersByTime(1);
  expect([open(), closed()]).toEqual([true, [1, 512, 514]]);
  expect(slots.counts).toMatchObject({ evicted: 1, refusedOfPeer: 2 });
});
