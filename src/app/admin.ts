import type { AddressInfo } from 'node:net';
import type { ProtectedList } from '../access/protected-list.ts';
import type { InspectToken } from '../access/token-inspection.ts';
import type { WatchedList } from '../access/watched-list.ts';
import type { AdminEndpoint } from '../admin/admin-endpoint.ts';
import { type AdminServer, createAdminServer } from '../admin/admin-server.ts';
import { DecisionLog } from '../admin/decision-log.ts';
import { createDecisionSearchEndpoint } from '../admin/decision-search.ts';
import { createDrift, warnOfDrift } from '../admin/drift.ts';
import { type Condition, findTrafficIncidents, Incidents } from '../admin/incidents.ts';
import { ListHistory } from '../admin/list-history.ts';
import { createRolloutEndpoint } from '../admin/rollout-endpoint.ts';
import { RowCounts } from '../admin/row-counts.ts';
import { createRowListEndpoint } from '../admin/row-list.ts';
import {
  createExplainEndpoint,
  createPurgeEndpoint,
  createStateEndpoints,
  type ExplainQuestion,
} from '../admin/state-endpoints.ts';
import { createSystemEndpoints } from '../admin/system-endpoints.ts';
import { Trends } from '../admin/trends.ts';
import type { Config } from '../config/schema.ts';
import { gauge } from '../lib/component.ts';
import { isolated, isolateLate } from '../lib/faults.ts';
import { finishInSlices } from '../lib/slices.ts';
import { makeReport, type RolloutReport } from '../rollout/report.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import type { Log } from '../telemetry/log.ts';
import { type Metrics, programMetrics } from '../telemetry/metrics.ts';
import { conditionOf, type ProcessStatus, readinessOf } from './process-status.ts';

/** Explains what would happen to a request under a list, or what is wrong with a token; the result is sent unchanged. */
export type Explain = (
  question: ExplainQuestion,
  config: Config,
  list: ProtectedList,
  inspect: InspectToken,
) => Promise<unknown>;

interface AdminInput {
  readonly config: Config;
  /** The configuration, with the changes of settings since the start. */
  inForce(): Config;
  /** Undefined: there is no `/api/explain`. */
  readonly explain: Explain | undefined;
  readonly version: string;
  readonly list: WatchedList;
  /** The status of this process, or of all workers together. */
  readonly status: ProcessStatus;
  readonly metrics: Pick<Metrics, 'register' | 'decisions'>;
  readonly log: Log;
}

export interface Admin {
  readonly server: AdminServer;
  /** Records an exchange of this process, or of any worker. Never throws. */
  noteExchange(record: ExchangeRecord): void;
  /** A worker has ended and is being replaced. */
  noteRestart(): void;
}

/** What the traffic of this process, or of all workers, has shown. */
type Observed = ReturnType<typeof createObserved>;
const createObserved = ({ metrics, log }: AdminInput) => ({
  ...{ rowCounts: new RowCounts(metrics.decisions), drift: createDrift(warnOfDrift(log)) },
  ...{ decisionLog: new DecisionLog(), incidents: new Incidents(Date.now()), trends: new Trends() },
});

/** Health is read this often even without an open console, so that the console can say since when something is wrong. */
const lookEveryMs = 5_000;

/** The admin port with its console; `undefined` where `admin` is false. */
export function createAdmin(input: AdminInput): Admin | undefined {
  const { config, metrics, list, status, log } = input;
  const settings = config.admin;
  const history = followHistory(input);
  if (settings === false) return undefined;
  const observed = createObserved(input);
  const { drift, decisionLog, incidents, rowCounts, trends } = observed;
  const noteExchange = isolated((record: ExchangeRecord) => {
    const nowMs = Date.now();
    trends.note(record, nowMs);
    drift.note(record, nowMs);
    decisionLog.note(record, nowMs);
  });
  const look = async () => {
    const condition = conditionOf(await status.health());
    const traffic = findTrafficIncidents(trends.readOutcomes('5m', Date.now()), (id) => incidents.has(id));
    incidents.update(condition, Date.now(), traffic);
    return condition;
  };
  for (const metric of programMetrics(input.version, Date.now())) metrics.register(metric);
  metrics.register(
    gauge('shopward_protected_rows_unmet', 'Rows that no request has met since the start.', 'sum', () =>
      rowCounts.countUnmet(list.inForce),
    ),
  );

  const server = createAdminServer({
    ...settings,
    readiness: async () => readinessOf(await status.health()),
    metrics: status.metrics,
    endpoints: createEndpoints(input, observed, history, look),
    onFault: (fault) => log.error({ event: 'fault', err: fault }, 'an endpoint of the admin port failed'),
  });
  let timer: NodeJS.Timeout | undefined;
  return {
    server: {
      ...server,
      listen() {
        timer = setInterval(() => isolateLate(look()), lookEveryMs).unref();
        return server.listen();
      },
      close() {
        clearInterval(timer);
        return server.close();
      },
    },
    noteExchange,
    noteRestart: () => incidents.noteRestart(Date.now()),
  };
}

/** Records and logs the changes of each edit of the list, also without an admin port. */
function followHistory({ list, metrics, log }: AdminInput): ListHistory {
  const history = new ListHistory(log);
  list.onCompared((check) => history.take(check));
  metrics.register(...history.metrics);
  return history;
}

function createEndpoints(
  input: AdminInput,
  { rowCounts, drift, decisionLog, incidents, trends }: Observed,
  history: ListHistory,
  look: () => Promise<Condition>,
): AdminEndpoint[] {
  const { config, inForce, metrics, explain, version, list, status } = input;
  const file = config.protectedResources;
  const rows = () => list.inForce.rows;
  const { rollout: counted } = status;
  const endpoints: AdminEndpoint[] = [
    ...createStateEndpoints({
      version,
      startedMs: Date.now(),
      mode: () => inForce().mode,
      now: Date.now,
      ...{ decisions: metrics.decisions, trends, incidents, look, drift, history },
      list: { file, rows, reloads: list.reloads },
    }),
    createRowListEndpoint({ file, list: () => list.inForce, reloads: list.reloads, counts: rowCounts }),
    ...createSystemEndpoints(status.system),
    createRolloutEndpoint(counted && (() => reportNow(input, counted))),
    createDecisionSearchEndpoint(decisionLog),
  ];
  if (explain !== undefined) {
    const explainNow = (question: ExplainQuestion) =>
      explain(question, inForce(), list.inForce, status.inspectToken);
    endpoints.push(createExplainEndpoint(explainNow));
  }
  const { purge } = status;
  if (purge) endpoints.push(createPurgeEndpoint(purge));
  return endpoints;
}

async function reportNow(
  { inForce, list }: AdminInput,
  counted: NonNullable<ProcessStatus['rollout']>,
): Promise<RolloutReport> {
  const counting = await counted();
  return finishInSlices(makeReport(counting, list.inForce.rows, inForce().mode === 'observe', Date.now()));
}

/** URL of a listener for clients on this machine. */
export function addressUrl(scheme: 'http' | 'https', { address, port }: AddressInfo): string {
  const host = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address;
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
