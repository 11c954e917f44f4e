import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createPlaces } from '../../src/app/places.ts';
import { validateConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';

/** The places of a process that may have so many files open, and what was said of them. */
function start(openFiles: string, listen: object = {}, limits: object = {}) {
  const { readFileSync } = fs;
  const restore = () => {
    fs.readFileSync = readFileSync;
    syncBuiltinESMExports();
  };
  fs.readFileSync = ((file: string, ...more: never[]) =>
    file === '/proc/self/limits'
      ? `Limit     Soft Limit    Hard Limit    Units\nMax open files            ${openFiles}      1048576     files\n`
      : readFileSync(file, ...more)) as typeof readFileSync;
  syncBuiltinESMExports();
  const said: object[] = [];
  const { config } = validateConfig({
    upstream: { url: 'http://glue.internal' },
    auth: { keys: { jwks: 'https://shop.example/keys' } },
    ...{ listen, limits },
  }) as { config: Config };
  const log = { warn: (fields: object) => said.push(fields) };
  try {
    return { ...createPlaces(config, log as never), said };
  } finally {
    restore();
  }
}

describe('connections of clients', () => {
  it.each([
    // A quarter of the files, at least, is for clients and their upstream.
    ['1024', 608, []],
    ['1023', 607, [{ event: 'few-descriptors', openFiles: 1023, maxConnections: 607, fitting: 607 }]],
    ['20000', 10_000, []],
    ['unlimited', 10_000, []],
  ])('of %s open files', (openFiles, limit, said) => {
    const { places, ...seen } = start(openFiles);
    expect([places.limit, seen.said]).toEqual([limit, said]);
  });

  it.each([
    [608, []],
    [609, [{ event: 'few-descriptors', openFiles: 1024, maxConnections: 609, fitting: 608 }]],
  ])('of 1024 open files, and %i as configured', (maxConnections, said) => {
    const { places, ...seen } = start('1024', { maxConnections });
    expect([places.limit, seen.said]).toEqual([maxConnections, said]);
  });
});

describe('what is said of them', () => {
  const full =
    'connections: all 1 places are taken (listen.maxConnections), idle ones are ended for new ones';
  const reasons = ({ connections }: ReturnType<typeof start>) => connections.health?.().reasons;

  it('few open files are a reason by themselves', () => {
    expect(reasons(start('1024'))).toEqual([]);
    expect(reasons(start('256'))).toEqual([
      'open files: this process may have 256, so that 80 clients find a place; raise the limit (ulimit -n, LimitNOFILE)',
    ]);
  });

  it('that there was no room, for ten seconds, and in the log once a minute', () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const started = start('2000', { maxConnections: 1 }, { clientShare: 100 });
    const { places, said } = started;
    const socket = () => ({ remoteAddress: '192.0.2.1', destroyed: false, destroy() {}, once() {} }) as never;
    expect(places.admit(socket())).toBe(true);
    expect(reasons(started)).toEqual([]);
    places.admit(socket());
    expect(reasons(started)).toEqual([full]);
    expect(said).toEqual([
      { event: 'connections-full', limit: 1, open: 1, evicted: 1, refused: 0, refusedOfPeer: 0 },
    ]);
    vi.advanceTimersByTime(9_999);
    expect(reasons(started)).toEqual([full]);
    vi.advanceTimersByTime(1);
    expect(reasons(started)).toEqual([]);
    vi.advanceTimersByTime(49_999);
    places.onShort?.();
    expect(said).toHaveLength(1);
    vi.advanceTimersByTime(1);
    places.onShort?.();
    expect(said).toHaveLength(2);
    places.counts.refused = 2;
    places.counts.refusedOfPeer = 3;
    const metrics = started.connections.metrics?.map(({ name, value }) => [name, value()]);
    expect(metrics).toEqual([
      ['shopward_connections', places.open],
      ['shopward_connections_limit', 1],
      ['shopward_connections_evicted', 1],
      ['shopward_connections_refused', 5],
    ]);
  });
});
