import { readFileSync } from 'node:fs';
import type { Config } from '../config/schema.ts';
import { compileTrust } from '../http/peer.ts';
import { type Component, counter, gauge, healthOf, type MetricSpec } from '../lib/component.ts';
import { ConnectionSlots } from '../server/in-flight.ts';
import { questionConnections } from './upstream.ts';

/** File descriptors reserved for Redis, files, pipes, the event loop, and the admin port with its connections. */
const ownDescriptors = 96;
/** Default limit of connections for each process: this many take hundreds of MiB of memory. */
const maxByDefault = 10_000;
/** A limit of open files below this is a mistake, or an old default. */
const fewDescriptors = 1_024;
/** Milliseconds for which `/readyz` reports that all connections were in use. */
const fullForMs = 10_000;

/** The connections that the public listener accepts, and their component. */
export function createConnectionSlots(config: Config): { slots: ConnectionSlots; connections: Component } {
  const descriptors = openFilesLimit();
  const fitting = connectionsFor(descriptors, config);
  const limit = config.listen.maxConnections ?? Math.min(fitting, maxByDefault);
  const isTrusted = compileTrust(config.trustedProxies);
  const slots = new ConnectionSlots({ limit, sharePercent: config.limits.clientShare, isTrusted });
  return {
    slots,
    connections: {
      name: 'connections',
      title: false,
      health: () => healthOf(connectionProblems(slots, descriptors, fitting)),
      metrics: connectionMetrics(slots),
    },
  };
}

/**
 * Number of client connections that these descriptors suffice for. Those for the upstream are reserved first:
 * `upstream.connections` and lookups, but at most half; with WebSockets, each of which needs an upstream connection, always
 * half. Exported for its tests.
 */
export function connectionsFor(descriptors: number, { upstream }: Pick<Config, 'upstream'>): number {
  const usable = Math.max(descriptors - ownDescriptors, descriptors / 4);
  const wanted = upstream.webSocket ? usable : upstream.connections + questionConnections;
  return Math.max(1, Math.floor(usable - Math.min(wanted, usable / 2)));
}

/** Why clients may be turned away, for `/readyz`. */
function connectionProblems(slots: ConnectionSlots, descriptors: number, fitting: number): string[] {
  const problems: string[] = [];
  if (slots.limit > fitting || descriptors < fewDescriptors) {
    problems.push(
      `open files: the limit of ${descriptors} is low for up to ${slots.limit} client connections; raise it (ulimit -n, LimitNOFILE)`,
    );
  }
  if (performance.now() - slots.lastFullMs < fullForMs) {
    problems.push(
      `connections: all ${slots.limit} connections are in use (listen.maxConnections); idle ones are closed for new ones`,
    );
  }
  return problems;
}

function connectionMetrics(slots: ConnectionSlots): MetricSpec[] {
  return [
    gauge('shopward_connections', 'Connections of clients.', 'sum', () => slots.open),
    gauge(
      'shopward_connections_limit',
      'Most client connections that are accepted (`listen.maxConnections`).',
      'sum',
      () => slots.limit,
    ),
    counter(
      'shopward_connections_evicted',
      'Idle client connections that were closed to make room for others.',
      () => slots.counts.evicted,
    ),
    counter(
      'shopward_connections_refused',
      'Client connections that were refused: all were in use, or the peer had its share.',
      () => slots.counts.refused + slots.counts.refusedOfPeer,
    ),
  ];
}

/** Number of files that this process may open: the soft limit, which Node has raised to the hard limit. */
function openFilesLimit(): number {
  try {
    const [, said] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? [];
    return said === undefined ? Number.MAX_SAFE_INTEGER : Number(said);
  } catch {
    // Not Linux.
    return Number.MAX_SAFE_INTEGER;
  }
}
