import { EventEmitter } from 'node:events';
import { setImmediate as nextIteration } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type Channel, createChannel, type Line } from '../../../src/cluster/channel.ts';

const neverMs = 600_000;

/** One end of an IPC channel, as Node has it: a message arrives at the other end in a later tick. */
class End extends EventEmitter implements Line {
  readonly sent: unknown[] = [];
  other: End | undefined;

  send(message: object, done: (fault: Error | null) => void): boolean {
    this.sent.push(message);
    setImmediate(() => {
      this.other?.emit('message', message);
      done(null);
    });
    return true;
  }
}

function connect(calls: Parameters<typeof createChannel>[1] = {}): {
  here: End;
  there: End;
  channel: Channel;
} {
  const [here, there] = [new End(), new End()];
  here.other = there;
  there.other = here;
  createChannel(there, calls);
  return { here, there, channel: createChannel(here, {}) };
}

describe('a question to another process', () => {
  it('rejects with the message and the code of the error in the other process', async () => {
    const { channel } = connect({
      listen: () => {
        throw Object.assign(new Error('the port is taken'), { code: 'EADDRINUSE' });
      },
      bug: async () => {
        throw new Error('a bug');
      },
    });
    await expect(channel.ask('listen', undefined, neverMs)).rejects.toMatchObject({
      message: 'the port is taken',
      code: 'EADDRINUSE',
    });
    const bug = await channel.ask('bug', undefined, neverMs).catch((fault: unknown) => fault);
    expect(bug).toMatchObject({ message: 'a bug', code: undefined });
  });

  it('rejects after its time-out, and a later answer is ignored', async () => {
    const late = Promise.withResolvers<string>();
    const { there, channel } = connect({ late: () => late.promise, soon: () => 'soon' });
    // The channel's timer does not keep the process alive, so this timer does.
    const alive = setInterval(() => {}, 1_000);
    await expect(channel.ask('late', undefined, 1)).rejects.toThrow('no answer to late');
    clearInterval(alive);
    late.resolve('too late');
    while (there.sent.length === 0) await nextIteration();
    expect(await channel.ask('soon', undefined, neverMs)).toBe('soon');
  });

  it('rejects within its time-out if the channel is broken', async () => {
    const line: Line = {
      send() {
        throw new Error('ERR_IPC_CHANNEL_CLOSED');
      },
      on() {},
    };
    const channel = createChannel(line, {});
    const alive = setInterval(() => {}, 1_000);
    await expect(channel.ask('ping', undefined, 1)).rejects.toThrow('no answer to ping');
    clearInterval(alive);
    await channel.emit('ping', undefined);
  });
});

it('messages of others on the channel are ignored', async () => {
  const { here, there, channel } = connect({ ping: () => true });
  for (const message of [null, 'text', {}, { NODE_foreign: 1 }, { shopward: {} }, { shopward: { id: 99 } }]) {
    for (const end of [here, there]) end.emit('message', message);
  }
  expect(await channel.ask('ping', undefined, neverMs)).toBe(true);
  expect(there.sent).toHaveLength(1);
});
