import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { ConnectionPlaces } from '../../src/server/connection-places.ts';

function connection(remoteAddress: string | undefined) {
  const socket = Object.assign(new EventEmitter(), {
    remoteAddress,
    destroyed: false,
    destroy() {
      if (socket.destroyed) return;
      socket.destroyed = true;
      socket.emit('close');
    },
  });
  return socket as unknown as Socket;
}

function open(limit: number, sharePercent = 100) {
  const places = new ConnectionPlaces({
    ...{ limit, sharePercent, isTrusted: (address: string) => address === '10.0.0.1' },
  });
  let short = 0;
  places.onShort = () => {
    short += 1;
  };
  const admit = (address?: string) => {
    const socket = connection(address);
    return { socket, isAdmitted: places.admit(socket) };
  };
  return { places, admit, short: () => short };
}

test('the one that has been idle the longest makes room; one with a request under way does not', () => {
  const { places, admit, short } = open(2);
  const [first, second] = [admit(), admit()];
  expect([places.counts, places.open, places.lastFullMs, short()]).toEqual([
    { evicted: 0, refused: 0, refusedOfPeer: 0 },
    ...[2, Number.NEGATIVE_INFINITY, 0],
  ]);
  places.busy(first.socket);
  const third = admit();
  expect([first.socket.destroyed, second.socket.destroyed, third.isAdmitted]).toEqual([false, true, true]);
  expect([places.counts.evicted, places.open, short()]).toEqual([1, 2, 1]);
  expect(places.lastFullMs).toBeGreaterThan(0);
  places.busy(third.socket);
  const fourth = admit();
  expect([fourth.isAdmitted, fourth.socket.destroyed, places.open, short()]).toEqual([false, true, 2, 2]);
  expect(places.counts).toEqual({ evicted: 1, refused: 1, refusedOfPeer: 0 });
  // Idle again, in this order.
  places.idle(third.socket);
  places.idle(first.socket);
  expect(admit().isAdmitted).toBe(true);
  expect([first.socket.destroyed, third.socket.destroyed]).toEqual([false, true]);
});

test('a place is left once, and one that has ended makes no room', () => {
  const { places, admit } = open(2);
  const [first, second] = [admit(), admit()];
  first.socket.emit('close');
  first.socket.emit('close');
  expect(places.open).toBe(1);
  places.idle(Object.assign(first.socket, { destroyed: true }));
  const third = admit();
  expect([places.open, second.socket.destroyed]).toEqual([2, false]);
  admit();
  expect([second.socket.destroyed, third.socket.destroyed, places.counts.evicted]).toEqual([true, false, 1]);
});

test('a peer has its share, and what it has left comes back; one that is trusted has no bound', () => {
  const { places, admit, short } = open(4, 50);
  const own = [admit('192.0.2.1'), admit('192.0.2.1'), admit('192.0.2.1')];
  expect(own.map(({ isAdmitted }) => isAdmitted)).toEqual([true, true, false]);
  expect([own[2]?.socket.destroyed, places.open, short()]).toEqual([true, 2, 1]);
  expect(places.counts).toEqual({ evicted: 0, refused: 0, refusedOfPeer: 1 });
  own[0]?.socket.destroy();
  expect([admit('192.0.2.1').isAdmitted, admit('192.0.2.1').isAdmitted]).toEqual([true, false]);
  const trusted = [admit('10.0.0.1'), admit('10.0.0.1'), admit('10.0.0.1')];
  expect(trusted.map(({ isAdmitted }) => isAdmitted)).toEqual([true, true, true]);
});

test('whoever found no place has its share back', () => {
  const { places, admit } = open(2, 50);
  const [first, second] = [admit('192.0.2.1'), admit('192.0.2.2')];
  places.busy(first.socket);
  places.busy(second.socket);
  expect(admit('192.0.2.3').isAdmitted).toBe(false);
  first.socket.destroy();
  expect(admit('192.0.2.3').isAdmitted).toBe(true);
});

test('a share is one place at least', () => {
  const { admit } = open(10, 1);
  expect([admit('192.0.2.1').isAdmitted, admit('192.0.2.1').isAdmitted]).toEqual([true, false]);
});
