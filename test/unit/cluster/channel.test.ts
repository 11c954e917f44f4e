import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { createChannel, type Line } from '../../../src/cluster/channel.ts';

/** One end of an IPC channel. */
class End extends EventEmitter implements Line {
  other: End | undefined;

  send(message: object, done: (fault: Error | null) => void): boolean {
    this.other?.emit('message', message);
    done(null);
    return true;
  }
}

it('a question gets an answer or the error of the other process, whatever else the channel carries', async () => {
  const [here, there] = [new End(), new End()];
  here.other = there;
  there.other = here;
  const taken = Object.assign(new Error('the port is taken'), { code: 'EADDRINUSE' });
  createChannel(there, { ping: () => true, listen: () => Promise.reject(taken) });
  const channel = createChannel(here, {});
  for (const message of [null, 'text', {}, { NODE_foreign: 1 }, { shopward: {} }, { shopward: { id: 99 } }]) {
    for (const end of [here, there]) end.emit('message', message);
  }
  expect(await channel.ask('ping', undefined, 600_000)).toBe(true);
  const { message, code } = taken;
  await expect(channel.ask('listen', undefined, 600_000)).rejects.toMatchObject({ message, code });
});
