import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ClientConnection } from '../../src/server/client-connection.ts';

/** A connection whose socket and responses are made up here: what is done to them, in its order. */
function open({ max = 100_000 } = {}) {
  const done: string[] = [];
  const socket = {
    writable: true,
    isPaused: false,
    pause() {
      socket.isPaused = true;
    },
    resume() {
      socket.isPaused = false;
    },
    end: (then: () => void) => {
      done.push('ended');
      then();
    },
    destroy: () => {
      socket.writable = false;
      done.push('destroyed');
    },
  };
  const waiting = { count: 0, max };
  const connection = new ClientConnection(socket as unknown as Duplex, {
    waiting,
    handle: ({ url }) => {
      done.push(`handle ${url}`);
      return { ended: () => void done.push(`over ${url}`) };
    },
    places: { busy: () => void done.push('busy'), idle: () => void done.push('idle') },
    rejectMalformed: (why, _socket, head) => void done.push(`${why} ${JSON.stringify(head)}`),
  });
  const take = (url: string, { complete = true } = {}) => {
    const response = Object.assign(new EventEmitter(), {
      shouldKeepAlive: true,
      writableEnded: false,
      headersSent: false,
    });
    const incoming = { url, method: 'GET', complete, headers: { accept: 'text/html' } };
    connection.take(incoming as unknown as IncomingMessage, response as unknown as ServerResponse);
    return response;
  };
  /** What was done since the last time. */
  const news = () => done.splice(0);
  return { connection, socket, waiting, take, news };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
afterEach(() => void vi.useRealTimers());

describe('the requests of one connection', () => {
  it('are handled one after the other, and nothing is read while one waits', async () => {
    const { connection, socket, waiting, take, news } = open();
    expect(connection.isIdle).toBe(true);
    const a = take('/a');
    expect([connection.isIdle, socket.isPaused, waiting.count]).toEqual([false, false, 0]);
    const b = take('/b');
    const c = take('/c');
    expect([socket.isPaused, waiting.count]).toEqual([true, 2]);
    expect(news()).toEqual(['busy', 'handle /a']);
    a.emit('close');
    expect(news()).toEqual(['over /a', 'handle /b']);
    // Node has read on by itself.
    socket.resume();
    await turn();
    expect([socket.isPaused, waiting.count]).toEqual([true, 1]);
    b.emit('close');
    expect(waiting.count).toBe(0);
    socket.resume();
    await turn();
    expect(socket.isPaused).toBe(false);
    socket.pause();
    c.emit('close');
    expect(news()).toEqual(['over /b', 'handle /c', 'over /c', 'idle']);
    expect([connection.isIdle, socket.isPaused]).toEqual([true, false]);
    take('/d');
    expect(news()).toEqual(['busy', 'handle /d']);
  });

  it('may have a body that is still to come when their turn comes', () => {
    const { take, news } = open();
    const first = take('/a');
    take('/b', { complete: false });
    first.emit('close');
    expect(news()).toEqual(['busy', 'handle /a', 'over /a', 'handle /b']);
  });

  it('are read on where the last one was begun before the turn is over', async () => {
    const { socket, take } = open();
    const [a, b] = [take('/a'), take('/b')];
    take('/c');
    a.emit('close');
    b.emit('close');
    socket.resume();
    await turn();
    expect(socket.isPaused).toBe(false);
  });

  it('4,096 of them wait; one more is refused in its turn, and nothing that follows is looked at', () => {
    const { connection, waiting, take, news } = open();
    let response = take('/');
    const rest = Array.from({ length: 4_096 }, () => take('/'));
    expect(waiting.count).toBe(4_096);
    take('/beyond');
    take('/ignored');
    connection.breakOff('bad-request', { reason: 'later' });
    expect([waiting.count, news()]).toEqual([4_096, ['busy', 'handle /']]);
    for (const next of rest) {
      response.emit('close');
      response = next;
    }
    expect(news()).toHaveLength(2 * 4_096);
    response.emit('close');
    expect(news()).toEqual(['over /', 'overloaded {"reason":"pipelined"}']);
  });

  it('beyond what may wait of all connections they end theirs, and leave room for others', () => {
    const { waiting, take, news } = open({ max: 2 });
    const first = take('/a');
    take('/b');
    take('/c');
    expect(news()).toEqual(['busy', 'handle /a']);
    take('/d');
    expect([waiting.count, news()]).toEqual([2, ['destroyed']]);
    first.emit('close');
    expect([waiting.count, news()]).toEqual([0, ['over /a']]);
  });

  it('have their answer handed over, and not sent yet', () => {
    const { connection, take } = open();
    expect(connection.unsent).toBeUndefined();
    const response = take('/');
    expect(connection.unsent).toBeUndefined();
    response.writableEnded = true;
    expect(connection.unsent).toBe(response);
  });
});

describe('a connection that is to end', () => {
  it('says so in the last answer, and in those to come', () => {
    const { connection, take } = open();
    const [a, b] = [take('/a'), take('/b')];
    connection.drain();
    expect([a.shouldKeepAlive, b.shouldKeepAlive]).toEqual([true, true]);
    a.emit('close');
    expect(b.shouldKeepAlive).toBe(false);
    b.emit('close');
    expect(take('/c').shouldKeepAlive).toBe(false);
    const other = open();
    const only = other.take('/');
    other.connection.drain();
    expect(only.shouldKeepAlive).toBe(false);
  });

  it('ends at once where it is idle', () => {
    const { connection, news } = open();
    connection.end();
    expect(news()).toEqual(['destroyed']);
  });

  it('stays for a second after an answer that promised to keep it, and for what comes in it', () => {
    vi.useFakeTimers();
    const { connection, take, news } = open();
    const a = take('/a');
    connection.end();
    a.emit('close');
    news();
    vi.advanceTimersByTime(999);
    expect(news()).toEqual([]);
    const b = take('/b');
    vi.advanceTimersByTime(1);
    b.emit('close');
    expect(news()).toEqual(['busy', 'handle /b', 'over /b', 'idle']);
    vi.advanceTimersByTime(1_000);
    expect(news()).toEqual(['ended', 'destroyed']);
  });

  it('and only then', () => {
    vi.useFakeTimers();
    const { take, news } = open();
    take('/').emit('close');
    news();
    vi.advanceTimersByTime(10_000);
    expect(news()).toEqual([]);
  });
});

describe('octets that are no request', () => {
  const head = { reason: 'invalid-method' };
  const refusal = 'bad-request {"reason":"invalid-method"}';

  it('are refused at once where nothing is under way, and nothing more is read', () => {
    const { connection, socket, take, news } = open();
    connection.breakOff('bad-request', head);
    expect([socket.isPaused, news()]).toEqual([true, [refusal]]);
    take('/');
    expect(news()).toEqual([]);
  });

  it('are refused after what came before them', () => {
    const { connection, take, news } = open();
    const [a, b] = [take('/a'), take('/b')];
    news();
    connection.breakOff('bad-request', head);
    a.emit('close');
    expect(news()).toEqual(['over /a', 'handle /b']);
    b.emit('close');
    expect(news()).toEqual(['over /b', refusal]);
  });

  const ofBody = `bad-request ${JSON.stringify({ ...head, method: 'GET', target: '/a', accept: 'text/html' })}`;

  it('in the body of a request are its answer, unless one has begun', () => {
    const { connection, take, news } = open();
    take('/a', { complete: false });
    news();
    connection.breakOff('bad-request', head);
    expect(news()).toEqual([ofBody]);
  });

  it('in the body of one that waited are its answer when its turn comes', () => {
    const { connection, take, news } = open();
    const first = take('/first');
    take('/a', { complete: false });
    connection.breakOff('bad-request', head);
    expect(news()).toEqual(['busy', 'handle /first']);
    first.emit('close');
    expect(news()).toEqual(['over /first', 'handle /a', ofBody]);
  });

  it('behind an answer that has begun end the connection without another one', () => {
    const { connection, take, news } = open();
    const response = take('/a', { complete: false });
    response.headersSent = true;
    news();
    connection.breakOff('bad-request', head);
    expect(news()).toEqual([]);
    response.emit('close');
    expect(news()).toEqual(['over /a', 'destroyed']);
  });
});
