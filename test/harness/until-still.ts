import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** So many turns in which the process might have taken more. */
const stillTurns = 20;

/**
 * Until a process takes no more of what it is offered: every buffer that is bounded is full. `turn` resolves when its event
 * loop has come round, and `taken` counts octets. Turns are counted and not the time, so that a process that the machine
 * does not let run is not taken for one that waits.
 */
export async function untilStill(turn: () => Promise<unknown>, taken: () => number): Promise<void> {
  let before = -1;
  for (let turns = 0; turns < stillTurns; turns += 1) {
    await sleep(20);
    await turn();
    const now = taken();
    if (now !== before) turns = 0;
    before = now;
  }
}

/** Octets of what was written to sockets that the kernel has. */
export function octetsTaken(sockets: Iterable<{ bytesWritten: number; writableLength: number }>): number {
  let taken = 0;
  for (const { bytesWritten, writableLength } of sockets) taken += bytesWritten - writableLength;
  return taken;
}

/** Octets that have come to connections of a port, and that nobody has read: what the kernel says (proc_net_tcp). */
export function octetsUnread(port: number): number {
  const local = port.toString(16).toUpperCase().padStart(4, '0');
  // `sl local_address rem_address st tx_queue:rx_queue`; 0A listens.
  const line = new RegExp(`:${local} [0-9A-F:]+ (?!0A)[0-9A-F]{2} [0-9A-F]+:([0-9A-F]+) `, 'g');
  let unread = 0;
  for (const [, queue = ''] of readFileSync('/proc/net/tcp', 'latin1').matchAll(line)) {
    unread += Number.parseInt(queue, 16);
  }
  return unread;
}
