import { expect, it } from 'vitest';
import { Slots, type SlotWaiter } from '../../src/forwarding/slots.ts';

function waiter(name: string, log: string[]): SlotWaiter {
  return { onSlot: () => log.push(`${name} in`), onNoSlot: () => log.push(`${name} out`) };
}

it('gives slots in order, queues a bounded number, and never counts wrong', async () => {
  const log: string[] = [];
  const slots = new Slots({ slots: 1, queueLimit: 2, queueTimeoutMs: 10_000 });
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => waiter(name, log)) as [
    SlotWaiter,
    SlotWaiter,
    SlotWaiter,
    SlotWaiter,
  ];
  for (const one of [a, b, c, d]) slots.acquire(one);
  expect([log, slots.taken, slots.waiting]).toEqual([['a in', 'd out'], 1, 2]);
  expect([slots.leave(b), slots.leave(b), slots.leave(a)]).toEqual([true, false, false]);
  slots.release();
  expect([log.at(-1), slots.taken, slots.waiting]).toEqual(['c in', 1, 0]);
  slots.release();
  expect(slots.taken).toBe(0);
});

it('lets nobody wait longer than the queue time-out', async () => {
  const slots = new Slots({ slots: 1, queueLimit: 1, queueTimeoutMs: 1 });
  slots.acquire(waiter('first', []));
  await new Promise<void>((resolve) => slots.acquire({ onSlot() {}, onNoSlot: resolve }));
  expect(slots.waiting).toBe(0);
});
