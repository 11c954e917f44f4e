import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** So many turns in which the process might have taken more, and how often among them it is asked whether it has. */
const stillTurns = 20;
const turnsBetweenLooks = 10;

/**
 * Until a process takes no more of what it is offered: every buffer that is bounded is full. `turn` resolves when its event
 * loop has come round, and `taken` counts octets, and never falls: what is the same at two looks was so between them. Turns
 * are counted and not the time, so that a process that the machine does not let run is not taken for one that waits.
 */
export async function untilStill(turn: () => Promise<unknown>, taken: () => number): Promise<void> {
  let before = taken();
  for (let turns = 1; turns <= stillTurns; turns += 1) {
    await sleep(20);
    await turn();
    if (turns % turnsBetweenLooks !== 0) continue;
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

/**
 * Octets that the kernel has of what clients wrote to a port, and that nobody has read: sent or not (proc_net_tcp). The
 * kernel looks through all connections that there could be, for some milliseconds.
 */
export function octetsUnread(port: number): number {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  // `sl local_address rem_address st tx_queue:rx_queue`; 0A listens.
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
