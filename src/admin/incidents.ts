import type { HealthDetail } from '../lib/component.ts';
import type { Problem } from '../lib/problem.ts';
import { type OutcomeReading, sumOf } from './trends.ts';

/** A dependency or feature as operators see it: one tile of the page. */
export interface Tile {
  /** Stable name, such as `keys`, `store`, `upstream` or `entity-tags`. */
  readonly id: string;
  readonly title: string;
  readonly status: 'ok' | 'degraded' | 'down' | 'off';
  /** One line in words. */
  readonly text: string;
  readonly facts: readonly HealthDetail[];
}

/** A time during which a component, the list, the process or the traffic was degraded or down. */
interface Incident {
  /**
   * Id of the tile; `list`: an edit is not in force; `process`: a reason that no tile gives; or the id of a traffic rule.
   */
  readonly id: string;
  readonly title: string;
  readonly status: 'degraded' | 'down';
  readonly text: string;
  readonly sinceMs: number;
  /** Null: the incident lasts. */
  readonly untilMs: number | null;
}

/** What incidents are derived from. */
export interface Condition {
  readonly ready: boolean;
  readonly reasons: readonly string[];
  /** Reasons that appear in no part and in no problem. */
  readonly others: readonly string[];
  readonly parts: readonly Tile[];
  readonly problems: readonly Problem[];
}

/** Past incidents that are still shown, and restarts of workers. */
const maxPast = 50;

/** An incident in its current and in its worst state; the worst one describes it once it is over. */
interface Known {
  readonly now: Incident;
  readonly gravest: Incident;
}

/**
 * What is degraded or down, since when, and past incidents. Updated every few seconds, even without a viewer: an incident
 * begins when an update first sees it, or earlier if the component says since when.
 */
export class Incidents {
  readonly #startedMs: number;
  readonly #current = new Map<string, Known>();
  #past: Incident[] = [];
  /** When workers were replaced, the newest first. */
  restarts: readonly number[] = [];

  constructor(startedMs = 0) {
    this.#startedMs = startedMs;
  }

  noteRestart(nowMs: number): void {
    this.restarts = [nowMs, ...this.restarts].slice(0, maxPast);
  }

  has(id: string): boolean {
    return this.#current.has(id);
  }

  /** Updates the incidents; `traffic`: those from `findTrafficIncidents`. */
  update(condition: Condition, nowMs: number, traffic: readonly Incident[] = []): void {
    const seen = [...incidentsOf(condition, nowMs), ...traffic];
    for (const [id, { gravest }] of this.#current) {
      if (seen.some((one) => one.id === id)) continue;
      this.#current.delete(id);
      this.#past = [{ ...gravest, untilMs: nowMs }, ...this.#past].slice(0, maxPast);
    }
    for (const incident of seen) {
      const known = this.#current.get(incident.id);
      const sinceMs = known?.now.sinceMs ?? Math.max(incident.sinceMs, this.#startedMs);
      const now = { ...incident, sinceMs };
      const isGraver = known?.gravest.status !== 'down' || now.status === 'down';
      this.#current.set(incident.id, { now, gravest: isGraver ? now : known.gravest });
    }
  }

  /** The worst first. */
  current(): readonly Incident[] {
    return [...this.#current.values()]
      .map(({ now }) => now)
      .sort((a, b) => Number(a.status !== 'down') - Number(b.status !== 'down'));
  }

  /** The newest first. */
  past(): readonly Incident[] {
    return this.#past;
  }
}

function incidentsOf({ ready, others, parts, problems }: Condition, nowMs: number): Incident[] {
  const found: Incident[] = [];
  const now = { sinceMs: nowMs, untilMs: null };
  for (const { id, title, status, text, facts } of parts) {
    if (status !== 'degraded' && status !== 'down') continue;
    const since = facts.find(
      ({ label, unit }) => unit === 'time' && (label === 'since' || label === 'failing since'),
    );
    const sinceMs = typeof since?.value === 'number' ? Math.min(since.value, nowMs) : nowMs;
    found.push({ id, title, status, text, sinceMs, untilMs: null });
  }
  if (problems.length > 0) {
    const text = 'the last edit is not in force; the last good version is';
    found.push({ id: 'list', title: 'Followed files', status: 'degraded', text, ...now });
  }
  if (others.length > 0) {
    const status = ready ? 'degraded' : 'down';
    found.push({ id: 'process', title: 'shopward', status, text: others.join('; '), ...now });
  }
  return found;
}

/** An outcome is an incident if its share of the last minute's requests is at least `least`. */
const trafficRules = [
  {
    id: 'many-refusals',
    title: 'Most requests are refused',
    outcome: 'refused',
    least: 0.5,
    text: 'were refused',
  },
  {
    id: 'many-failures',
    title: 'Requests fail',
    outcome: 'failed',
    least: 0.05,
    text: 'ended with 5xx or were cut off',
  },
] as const;

const trafficMs = 60_000;
/** With fewer requests a share says nothing. */
const leastRequests = 30;

/**
 * Incidents shown by the outcomes of the last minute, whatever the components report. A known incident (`isKnown`, by id)
 * lasts until its share falls below half of `least`, so that a share around `least` is one incident, not many. Pure.
 */
export function findTrafficIncidents(
  { stepMs, endMs, outcomes }: OutcomeReading,
  isKnown: (id: string) => boolean,
): readonly Incident[] {
  const recent = (counts: readonly number[]) => counts.slice(-trafficMs / stepMs);
  const whole = Object.values(outcomes).reduce((sum, counts) => sum + sumOf(recent(counts)), 0);
  return trafficRules.flatMap(({ id, title, outcome, least, text }) => {
    const counts = recent(outcomes[outcome]);
    const times = sumOf(counts);
    const share = times / Math.max(whole, 1);
    const isIncident = isKnown(id) ? share >= least / 2 : whole >= leastRequests && share >= least;
    if (!isIncident) return [];
    const stepsAgo = counts.length - counts.findIndex((count) => count > 0);
    return {
      ...{ id, title, status: 'degraded' as const, sinceMs: endMs - stepsAgo * stepMs, untilMs: null },
      text: `${Math.round(100 * share)} % of the last minute: ${times} of ${whole} requests ${text}`,
    };
  });
}
