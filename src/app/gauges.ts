import type { KeySource } from '../access/key-source.ts';
import type { TokenVerifier } from '../access/token-verifier.ts';
import type { ConnectionPlaces } from '../server/connection-places.ts';
import { logOutput } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Forwarder } from '../upstream/forwarder.ts';
import type { WatchedList } from './watched-list.ts';

export interface GaugeSources {
  readonly forwarder: Pick<Forwarder, 'inFlight' | 'queued'>;
  readonly list: WatchedList;
  readonly keys: KeySource;
  readonly verifier: Pick<TokenVerifier, 'status'>;
  inFlight(): number;
  readonly places: ConnectionPlaces;
  secretProblems(): readonly unknown[];
  /** Undefined: there is no certificate. */
  certificateEndMs(): number | undefined;
}

/** What is read at each scrape. Of the list and the keys the worker that is worst off is shown. */
export function registerGauges(
  metrics: Metrics,
  { forwarder, list, keys, verifier, inFlight, places, secretProblems, certificateEndMs }: GaugeSources,
): void {
  metrics.registerGauge({
    name: 'http_server_active_requests',
    help: 'Requests in flight.',
    value: inFlight,
  });
  metrics.registerGauge({
    name: 'shopward_connections',
    help: 'Connections of clients.',
    value: () => places.open,
  });
  metrics.registerGauge({
    name: 'shopward_connections_limit',
    help: 'Connections of clients that are taken at most (`listen.maxConnections`).',
    value: () => places.limit,
  });
  metrics.registerCounter({
    name: 'shopward_connections_evicted',
    help: 'Idle connections of clients that were ended to make room for others.',
    value: () => places.counts.evicted,
  });
  metrics.registerCounter({
    name: 'shopward_connections_refused',
    help: 'Connections of clients that were not taken: there was no room, or the peer had its share.',
    value: () => places.counts.refused + places.counts.refusedOfPeer,
  });
  metrics.registerGauge({
    name: 'shopward_upstream_queue',
    help: 'Requests that wait for an upstream connection.',
    value: () => forwarder.queued,
  });
  metrics.registerGauge({
    name: 'shopward_upstream_active_requests',
    help: 'Exchanges with the upstream.',
    value: () => forwarder.inFlight,
  });
  metrics.registerGauge({
    name: 'shopward_protected_rows',
    help: 'Rows of the protected list in force.',
    value: () => list.current().rows.length,
    aggregate: 'min',
  });
  metrics.registerGauge({
    name: 'shopward_config_last_reload_success',
    help: 'Whether the last edit of the protected list is in force.',
    value: () => (list.problems().length === 0 ? 1 : 0),
    aggregate: 'min',
  });
  metrics.registerGauge({
    name: 'shopward_config_last_reload_success_timestamp_seconds',
    help: 'When a list last took effect.',
    value: () => Math.floor(list.reloads.lastSuccessMs / 1000),
    aggregate: 'min',
  });
  metrics.registerGauge({
    name: 'shopward_keys',
    help: 'Usable verification keys.',
    value: () => keys.status().keys,
    aggregate: 'min',
  });
  metrics.registerGauge({
    name: 'shopward_keys_last_load_success',
    help: 'Whether the last attempt to load the verification keys succeeded.',
    value: () => (keys.status().lastError === undefined ? 1 : 0),
    aggregate: 'min',
  });
  metrics.registerGauge({
    name: 'shopward_keys_last_load_success_timestamp_seconds',
    help: 'When verification keys were last loaded; 0: never, or a secret.',
    value: () => Math.floor((keys.status().lastSuccessMs ?? 0) / 1000),
    aggregate: 'min',
  });
  metrics.registerCounter({
    name: 'shopward_key_load_failures',
    help: 'Attempts to load the verification keys that failed, in every process.',
    value: () => keys.status().failures,
  });
  metrics.registerGauge({
    name: 'shopward_secrets_last_reload_success',
    help: 'Whether the last change of a certificate or of a file with a secret is in force.',
    value: () => (secretProblems().length === 0 ? 1 : 0),
    aggregate: 'min',
  });
  if (certificateEndMs() !== undefined) {
    metrics.registerGauge({
      name: 'shopward_certificate_expiry_timestamp_seconds',
      help: 'When the certificate of `listen.tls` ends.',
      value: () => Math.floor((certificateEndMs() ?? 0) / 1000),
      aggregate: 'min',
    });
  }
  metrics.registerCounter({
    name: 'shopward_log_write_failures',
    help: 'Writes of log lines that failed; lines beyond what memory keeps are lost.',
    value: () => logOutput().failures,
  });
  metrics.registerCounter({
    name: 'shopward_log_dropped_lines',
    help: 'Log lines that were dropped, because nobody took them or they could not be written.',
    value: () => logOutput().droppedLines,
  });
  metrics.registerGauge({
    name: 'shopward_remembered_tokens',
    help: 'Verified tokens in memory.',
    value: () => verifier.status().remembered,
  });
}

/** Edits of the list, counted once: by who follows its file, not by each worker that is told. */
export function registerListCounters(metrics: Metrics, { reloads }: Pick<WatchedList, 'reloads'>): void {
  metrics.registerCounter({
    name: 'shopward_config_reloads',
    help: 'Edits of the protected list that took effect.',
    value: () => reloads.succeeded,
  });
  metrics.registerCounter({
    name: 'shopward_config_reload_failures',
    help: 'Edits of the protected list that were refused.',
    value: () => reloads.failed,
  });
}
