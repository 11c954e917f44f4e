import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** How many ticks without progress are enough, and after how many ticks the progress is read. */
const stillTicks = 20;
const ticksBetweenLooks = 10;

/**
 * Waits until a process accepts no more bytes: every bounded buffer is full. `tick` resolves after a tick of its event
 * loop. `taken` counts octets and never falls, so two equal readings mean no progress between them. Ticks are counted,
 * not time: a process that gets no CPU is not mistaken for one that is blocked.
 */
export async function untilStill(tick: () => Promise<unknown>, taken: () => number): Promise<void> {
  let before = taken();
  for (let ticks = 1; ticks <= stillTicks; ticks += 1) {
    await sleep(20);
    await tick();
    if (ticks % ticksBetweenLooks !== 0) continue;
    const now = taken();
    if (now !== before) ticks = 0;
    before = now;
  }
}

/** Octets written to these sockets that the kernel has accepted. */
export function octetsTaken(sockets: Iterable<{ bytesWritten: number; writableLength: number }>): number {
  let taken = 0;
  for (const { bytesWritten, writableLength } of sockets) taken += bytesWritten - writableLength;
  return taken;
}

/**
 * Octets that clients wrote to a port and that are unread: not sent, or not received by the process (proc_net_tcp).
 * Reading that file takes the kernel some milliseconds.
 */
export function octetsUnread(port: number): number {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  // Columns: `sl local_address rem_address st tx_queue:rx_queue`. State 0A is LISTEN.
  const lines = /:([0-9A-F]{4}) [0-9A-F]+:([0-9A-F]{4}) (?!0A)[0-9A-F]{2} ([0-9A-F]+):([0-9A-F]+) /g;
  let unread = 0;
  for (const [, local, remote, unsent = '', waiting = ''] of readFileSync('/proc/net/tcp', 'latin1').matchAll(
    lines,
  )) {
    if (local === hex) unread += Number.parseInt(waiting, 16);
    if (remote === hex) unread += Number.parseInt(unsent, 16);
  }
  return unread;
}
