import { describe, expect, it } from 'vitest';
import { FairSemaphore, type Permit } from '../../../src/lib/fair-semaphore.ts';

const long = 60_000;

/** Asks for permits for clients by name, and notes in which order they get them. */
function setUp(permits: number, capacity: number) {
  const fair = new FairSemaphore({ permits, capacity });
  const running: { readonly client: string; readonly permit: Permit }[] = [];
  return {
    fair,
    running,
    enter(client: string, isStrict = false, waitMs = long): Permit | undefined {
      const permit = fair.acquire(client, isStrict, waitMs);
      if (permit === undefined) return undefined;
      if (permit.granted === undefined) running.push({ client, permit });
      else permit.granted.then((isGranted) => isGranted && running.push({ client, permit }));
      return permit;
    },
    /** Gives back the oldest permit; returns who has permits then. */
    async endFirst(): Promise<string> {
      running.shift()?.permit.release();
      await null;
      await null;
      return running.map(({ client }) => client).join('');
    },
  };
}

describe('permits', () => {
  it('one client has half of them, rounded up, and the rest is free for others', () => {
    const { enter, running } = setUp(5, 100);
    for (let i = 0; i < 10; i++) enter('a');
    expect(running.map(({ client }) => client).join('')).toBe('aaa');
    enter('b');
    enter('b');
    enter('c');
    expect(running.map(({ client }) => client).join('')).toBe('aaabb');
  });

  it('alternates between clients that have equally many', async () => {
    const { enter, endFirst } = setUp(2, 100);
    for (const client of 'abcabcabc') enter(client);
    const seen: string[] = [];
    for (let i = 0; i < 5; i++) seen.push(await endFirst());
    expect(seen).toEqual(['bc', 'ca', 'ab', 'bc', 'ca']);
  });

  it('gives a client without a permit the next one, while others keep theirs', async () => {
    for (const others of [1, 2, 3, 7]) {
      const { enter, endFirst, running } = setUp(8, 10_000);
      const names = Array.from({ length: others }, (_, i) => String.fromCharCode(97 + i));
      for (let i = 0; i < 200; i++) for (const name of names) enter(name);
      for (let i = 0; i < 50; i++) await endFirst();
      const before = new Set(running);
      enter('Z');
      for (let ended = 0; !running.some(({ client }) => client === 'Z'); ended++) {
        expect(ended).toBeLessThan(8);
        for (const name of names) enter(name);
        await endFirst();
      }
      expect(running.length).toBeLessThanOrEqual(8);
      expect(before.size).toBeGreaterThan(0);
    }
  });
});

describe('capacity', () => {
  it('one client gets at most half of it, and all clients together no more than all of it', () => {
    const { enter, fair } = setUp(2, 10);
    const all = (client: string) =>
      Array.from({ length: 8 }, () => enter(client) !== undefined).filter(Boolean);
    expect([all('a').length, all('b').length, all('c').length]).toEqual([5, 5, 0]);
    expect(fair.size).toBe(10);
  });

  it('with `isStrict`, waits of a client count towards its share of permits', () => {
    const { enter, running } = setUp(4, 100);
    expect([enter('a', true), enter('a', true), enter('a', true)].map(Boolean)).toEqual([true, true, false]);
    for (let i = 0; i < 3; i++) enter('b');
    expect(running).toHaveLength(4);
    expect([enter('c', true), enter('c', true), enter('c', true)].map(Boolean)).toEqual([true, true, false]);
  });

  it('a client that waits too long gives up and leaves neither a permit nor a wait behind', async () => {
    const { enter, fair, endFirst, running } = setUp(1, 10);
    enter('a');
    const late = enter('b', false, 1);
    expect(await late?.granted).toBe(false);
    late?.release();
    expect(fair.size).toBe(1);
    await endFirst();
    expect([running.length, fair.size]).toEqual([0, 0]);
    enter('c');
    expect(running.map(({ client }) => client)).toEqual(['c']);
  });

  it('a permit that is granted as a client gives up is not lost', async () => {
    const { enter, fair } = setUp(1, 10);
    const first = enter('a');
    const late = enter('b', false, 1);
    await new Promise((resolve) => setTimeout(resolve, 5));
    // The wait of b is over, but b has not left the queue yet.
    first?.release();
    late?.release();
    expect(fair.size).toBe(0);
    expect(enter('c')?.granted).toBe(undefined);
  });
});
