import type { HealthDetail } from '../lib/component.ts';
import type { Problem } from '../lib/problem.ts';

/** A dependency or feature as operators see it: one tile of the page. */
export interface Tile {
  /** Stable name: `keys`, `store`, `upstream`, `entity-tags`, `url-resolver`, `refresh-tokens`. */
  readonly id: string;
  readonly title: string;
  readonly status: 'ok' | 'degraded' | 'down' | 'off';
  /** One line in words. */
  readonly text: string;
  readonly facts: readonly HealthDetail[];
}

/** Something that is, or was, not well. */
export interface Incident {
  /** Id of the part, `list` for edits that are not in force, `process` for what no part says, or of a rule of the traffic. */
  readonly id: string;
  readonly title: string;
  readonly status: 'degraded' | 'down';
  readonly text: string;
  readonly sinceMs: number;
  /** Null: it is still so. */
  readonly untilMs: number | null;
}

/** What is looked at. */
export interface Condition {
  readonly ready: boolean;
  readonly reasons: readonly string[];
  readonly parts: readonly Tile[];
  readonly problems: readonly Problem[];
}

/** Those that are over, kept for whoever comes later. */
const maxPast = 50;

/** How it is, and how it was when it was gravest, which describes it when it is over. */
interface Known {
  readonly now: Incident;
  readonly gravest: Incident;
}

/**
 * Since when something is not well, and what was not well before. It is looked at every few seconds, whether or not
 * anybody watches: the time of a start is that of the first look that saw it, or what the part itself knows.
 */
export class Incidents {
  readonly #startedMs: number;
  readonly #current = new Map<string, Known>();
  #past: Incident[] = [];

  constructor(startedMs = 0) {
    this.#startedMs = startedMs;
  }

  has(id: string): boolean {
    return this.#current.has(id);
  }

  /** Takes what is so now; `traffic`: what the requests say by themselves. */
  look(condition: Condition, nowMs: number, traffic: readonly Incident[] = []): void {
    const seen = [...incidentsOf(condition, nowMs), ...traffic];
    for (const [id, { gravest }] of this.#current) {
      const found = seen.find((one) => one.id === id);
      if (found !== undefined && found.untilMs === null) continue;
      this.#current.delete(id);
      this.#past = [{ ...gravest, untilMs: found?.untilMs ?? nowMs }, ...this.#past].slice(0, maxPast);
    }
    for (const incident of seen) {
      if (incident.untilMs !== null) continue;
      const known = this.#current.get(incident.id);
      const sinceMs = known?.now.sinceMs ?? Math.max(incident.sinceMs, this.#startedMs);
      const now = { ...incident, sinceMs };
      const isGraver = known?.gravest.status !== 'down' || now.status === 'down';
      this.#current.set(incident.id, { now, gravest: isGraver ? now : known.gravest });
    }
  }

  /** The gravest first. */
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

function incidentsOf({ ready, reasons, parts, problems }: Condition, nowMs: number): Incident[] {
  const found: Incident[] = [];
  for (const { id, title, status, text, facts } of parts) {
    if (status !== 'degraded' && status !== 'down') continue;
    const since = facts.find(
      ({ label, unit }) => unit === 'time' && (label === 'since' || label === 'failing since'),
    );
    const sinceMs = typeof since?.value === 'number' ? Math.min(since.value, nowMs) : nowMs;
    found.push({ id, title, status, text, sinceMs, untilMs: null });
  }
  const [problem] = problems.toSorted((a, b) => a.severity.localeCompare(b.severity));
  if (problem !== undefined) {
    const text = 'the last edit is not in force; the last good version is';
    found.push({
      id: 'list',
      title: 'Followed files',
      status: 'degraded',
      text,
      sinceMs: nowMs,
      untilMs: null,
    });
  }
  const others = reasons.filter(
    (reason) =>
      !problems.some(({ text }) => reason.includes(text)) &&
      !parts.some(
        ({ title, text, status }) =>
          status !== 'ok' && status !== 'off' && (isSaid(reason, text) || isOf(reason, title)),
      ),
  );
  const [first] = others;
  if (first !== undefined) {
    const status = ready ? 'degraded' : 'down';
    found.push({
      id: 'process',
      title: 'shopward',
      status,
      text: others.join('; '),
      sinceMs: nowMs,
      untilMs: null,
    });
  }
  return found;
}

/** A reason that names its part first, such as `entity tags: …`, is that part's. */
function isOf(reason: string, title: string): boolean {
  return reason.toLowerCase().startsWith(`${title.toLowerCase()}:`);
}

/** Whether a part says a reason already; both may have a few words of their own before it. */
function isSaid(reason: string, text: string): boolean {
  const tail = (one: string) => one.slice(one.indexOf(': ') + 1).trim();
  return reason.includes(text) || text.includes(reason) || tail(reason) === tail(text);
}
