import type { Forwarder } from '../forwarding/forwarder.ts';
import type { KeySource } from '../protection/key-source.ts';
import type { TokenVerifier } from '../protection/token-verifier.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { LiveList } from './live-list.ts';

export interface GaugeSources {
  readonly forwarder: Pick<Forwarder, 'inFlight' | 'queued'>;
  readonly list: LiveList;
  readonly keys: KeySource;
  readonly verifier: Pick<TokenVerifier, 'status'>;
  inFlight(): number;
}

/** What is read at each scrape. Of the list and the keys the worker that is worst off is shown. */
export function registerGauges(
  metrics: Metrics,
  { forwarder, list, keys, verifier, inFlight }: GaugeSources,
): void {
  metrics.registerGauge({
    name: 'http_server_active_requests',
    help: 'Requests in flight.',
    value: inFlight,
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
    together: 'min',
  });
  metrics.registerGauge({
    name: 'shopward_config_last_reload_success',
    help: 'Whether the last edit of the protected list is in force.',
    value: () => (list.problems().length === 0 ? 1 : 0),
    together: 'min',
  });
  metrics.registerGauge({
    name: 'shopward_config_last_reload_success_timestamp_seconds',
    help: 'When a list last took effect.',
    value: () => Math.floor(list.reloads.lastSuccessMs / 1000),
    together: 'min',
  });
  metrics.registerCounter({
    name: 'shopward_config_reloads',
    help: 'Edits of the protected list that took effect.',
    value: () => list.reloads.succeeded,
  });
  metrics.registerCounter({
    name: 'shopward_config_reload_failures',
    help: 'Edits of the protected list that were refused.',
    value: () => list.reloads.failed,
  });
  metrics.registerGauge({
    name: 'shopward_keys',
    help: 'Usable verification keys.',
    value: () => keys.status().keys,
    together: 'min',
  });
  metrics.registerGauge({
    name: 'shopward_remembered_tokens',
    help: 'Verified tokens in memory.',
    value: () => verifier.status().remembered,
  });
}
