import type { Socket } from 'node:net';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Subscriptions } from '../../src/redis/clients.ts';
import { bulk, healthy, infoReply, slotsReply, startScriptedRedis } from './scripted-redis.ts';

/** What the made-up Redis was told of channels, in order, and how it answers. */
let told: string[];
let answerTo: (channel: string) => 'confirmed' | 'refused' | 'nothing';
let subscriber: Socket;
/** Ports of the nodes of a Cluster, the slots shared among them. */
let nodes: number[];
let redis: Awaited<ReturnType<typeof startScriptedRedis>>;

beforeEach(async () => {
  told = [];
  answerTo = () => 'confirmed';
  nodes = [];
  redis = await startScriptedRedis((words, socket) => {
    const [name = '', channel = ''] = words;
    if (/^info$/i.test(name)) return infoReply(healthy);
    if (/^cluster$/i.test(name)) return slotsReply(nodes);
    if (!/subscribe$/i.test(name)) return '+OK\r\n';
    subscriber = socket;
    told.push(`${name.toLowerCase()} ${channel}`);
    const answer = answerTo(channel);
    if (answer === 'nothing') return undefined;
    if (answer === 'refused') return '-NOPERM no channels\r\n';
    return `*3\r\n${bulk(name.toLowerCase())}${bulk(channel)}:1\r\n`;
  });
});

function open(kind = 'single'): Subscriptions {
  const address = { kind, hosts: [{ host: '127.0.0.1', port: redis.port }], db: 0, tls: false };
  const subscriptions = new Subscriptions({ address: address as never, timeoutMs: 5_000 });
  onTestFinished(() => subscriptions.close());
  return subscriptions;
}

/** Everything that was told before has arrived by then. */
async function say(channel: string, message: string, until: () => boolean): Promise<void> {
  subscriber.write(`*3\r\n${bulk('message')}${bulk(channel)}${bulk(message)}`);
  await expect.poll(until, { interval: 2 }).toBe(true);
}

async function whenTold(...all: readonly string[]): Promise<void> {
  await expect.poll(() => told, { interval: 2 }).toEqual(all);
}

describe('messages', () => {
  it('reach everybody who listens, though one of them throws, until they leave', async () => {
    const subscriptions = open();
    const heard: string[] = [];
    const broken = subscriptions.subscribe('a', () => {
      heard.push('broken');
      throw new Error('broken');
    });
    const first = subscriptions.subscribe('a', (message) => heard.push(`first ${message}`));
    const last = subscriptions.subscribe('a', (message) => heard.push(`last ${message}`));
    await whenTold('subscribe a');
    await say('a', '1', () => heard.includes('last 1'));
    expect(heard.splice(0)).toEqual(['broken', 'first 1', 'last 1']);
    broken();
    first();
    await say('a', '2', () => heard.length > 0);
    expect(heard.splice(0)).toEqual(['last 2']);
    // Whoever is left is not cut off; with the last one the subscription ends.
    expect(told.splice(0)).toEqual(['subscribe a']);
    last();
    await whenTold('unsubscribe a');
    subscriptions.subscribe('b', () => heard.push('b'));
    await whenTold('unsubscribe a', 'subscribe b');
    subscriber.write(`*3\r\n${bulk('message')}${bulk('a')}${bulk('3')}`);
    await say('b', '', () => heard.length > 0);
    expect(heard).toEqual(['b']);
  });

  it('of a channel that was asked for before the connection are subscribed to when it is there, each once', async () => {
    const subscriptions = open();
    subscriptions.subscribe('a', () => {});
    subscriptions.subscribe('b', () => {});
    await whenTold('subscribe a', 'subscribe b');
    subscriptions.subscribe('a', () => {});
    subscriptions.subscribe('c', () => {});
    await whenTold('subscribe a', 'subscribe b', 'subscribe c');
  });
});

describe('a new connection', () => {
  it('subscribes again, and tells whoever may have missed something', async () => {
    const subscriptions = open();
    const again: string[] = [];
    const heard: string[] = [];
    for (const name of ['first', 'last'])
      subscriptions.subscribe(
        'a',
        (message) => heard.push(message),
        () => again.push(name),
      );
    subscriptions.subscribe('silent', () => {});
    const leave = subscriptions.subscribe(
      'left',
      () => {},
      () => again.push('left'),
    );
    const all = ['subscribe a', 'subscribe silent', 'subscribe left'];
    await whenTold(...all);
    await say('a', '1', () => heard.length === 2);
    leave();
    // It has heard all that there was: it was not there before.
    subscriptions.subscribe(
      'left',
      () => heard.push('left'),
      () => again.push('left anew'),
    );
    await whenTold(...all, 'unsubscribe left', 'subscribe left');
    await say('left', '', () => heard.includes('left'));
    expect(again).toEqual([]);
    told.length = 0;
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    onTestFinished(() => printed.mockRestore());
    subscriber.resetAndDestroy();
    await expect.poll(() => again, { interval: 2 }).toEqual(['first', 'last', 'left anew']);
    expect(told).toEqual(all);
    expect(printed).not.toHaveBeenCalled();
  });
});

it('a node that joins or leaves a Cluster may be the one that was listened to', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  nodes = [redis.port];
  const subscriptions = open('cluster');
  let again = 0;
  subscriptions.subscribe(
    'a',
    () => {},
    () => (again += 1),
  );
  await whenTold('subscribe a');
  const other = await startScriptedRedis(([name = '']) =>
    /^cluster$/i.test(name) ? slotsReply(nodes) : /^info$/i.test(name) ? infoReply(healthy) : '+OK\r\n',
  );
  for (const [members, times] of [
    [[redis.port, other.port], 1],
    [[redis.port], 2],
  ] as const) {
    nodes = [...members];
    await expect
      .poll(
        async () => {
          await vi.advanceTimersByTimeAsync(100);
          return again;
        },
        { interval: 2 },
      )
      .toBe(times);
  }
});

describe('a refused subscription', () => {
  it('is asked for again, with the others, once', async () => {
    const subscriptions = open();
    answerTo = () => 'refused';
    subscriptions.subscribe('a', () => {});
    subscriptions.subscribe('b', () => {});
    await whenTold('subscribe a', 'subscribe b');
    answerTo = () => 'confirmed';
    await whenTold('subscribe a', 'subscribe b', 'subscribe a', 'subscribe b');
    subscriptions.subscribe('c', () => {});
    await whenTold('subscribe a', 'subscribe b', 'subscribe a', 'subscribe b', 'subscribe c');
    // And once more, should it be refused again.
    answerTo = () => 'refused';
    told.length = 0;
    subscriptions.subscribe('d', () => {});
    await whenTold('subscribe d');
    answerTo = () => 'confirmed';
    await whenTold('subscribe d', 'subscribe a', 'subscribe b', 'subscribe c', 'subscribe d');
  });

  describe('by the clock', () => {
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      onTestFinished(() => void vi.useRealTimers());
    });

    it('is not asked for later where the connection broke: the next one asks', async () => {
      const subscriptions = open();
      answerTo = () => 'nothing';
      subscriptions.subscribe('a', () => {});
      await whenTold('subscribe a');
      answerTo = () => 'confirmed';
      redis.drop();
      await expect
        .poll(
          async () => {
            await vi.advanceTimersByTimeAsync(5);
            return told;
          },
          { interval: 2 },
        )
        .toEqual(['subscribe a', 'subscribe a']);
      await vi.advanceTimersByTimeAsync(1_000);
      subscriptions.subscribe('b', () => {});
      await whenTold('subscribe a', 'subscribe a', 'subscribe b');
    });

    it('leaves nothing behind when it is given up', async () => {
      const subscriptions = open();
      answerTo = (channel) => (channel === 'refused' ? 'refused' : 'confirmed');
      const heard: string[] = [];
      subscriptions.subscribe('a', (message) => heard.push(message));
      subscriptions.subscribe('refused', () => {});
      await whenTold('subscribe a', 'subscribe refused');
      await say('a', '1', () => heard.length > 0);
      expect(vi.getTimerCount()).toBe(1);
      subscriptions.close();
      // That of the connection, which ends by itself.
      expect(vi.getTimerCount()).toBe(1);
    });
  });
});
