import type { Outcome } from '../telemetry/outcome.ts';
import type { OutcomeReading } from '../telemetry/trends.ts';
import type { Incident } from './incidents.ts';

/** Fewer requests than this in the time that is looked at say nothing. */
const leastRequests = 30;
/** An incident is over after so long without a bad step. */
const calmMs = 60_000;

interface Rule {
  readonly id: string;
  readonly title: string;
  readonly outcome: Outcome;
  /** From this share of all requests on it is an incident, in the whole time; a step with this share is a bad one. */
  readonly least: number;
  readonly text: string;
}

const rules: readonly Rule[] = [
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
    text: 'ended with 5xx, or broke off',
  },
];

/**
 * Incidents that the outcomes of the last minutes show, whatever the components report: most requests are refused, or some
 * fail. One lasts from its first bad step until there was none for `calmMs` (then it has `untilMs`). One that `isKnown` by
 * its id lasts even while the whole share is below `least`, so that a share around it is one incident, not many. Pure.
 */
export function findTrafficIncidents(
  { stepMs, endMs, outcomes }: OutcomeReading,
  isKnown: (id: string) => boolean,
): readonly Incident[] {
  const all = outcomes.passed.map((_, i) =>
    Object.values(outcomes).reduce((sum, counts) => sum + (counts[i] ?? 0), 0),
  );
  const whole = sumOf(all);
  return rules.flatMap(({ id, title, outcome, least, text }) => {
    const times = sumOf(outcomes[outcome]);
    if (!isKnown(id) && (whole < leastRequests || times / whole < least)) return [];
    const spell = lastSpell(
      all.map((count, i) => count > 0 && (outcomes[outcome][i] ?? 0) / count >= least),
      calmMs / stepMs,
    );
    if (spell === undefined) return [];
    const minutes = Math.round((all.length * stepMs) / 60_000);
    const share = `${Math.round((100 * times) / whole)} %`;
    return {
      id,
      title,
      status: 'degraded' as const,
      text: `${share} of the last ${minutes} minutes: ${times} of ${whole} requests ${text}`,
      sinceMs: endMs - (all.length - spell.first) * stepMs,
      untilMs: spell.isOver ? endMs - (all.length - spell.last - 1) * stepMs : null,
    };
  });
}

/** The last run of bad steps, in which no two are further than `calm` steps apart. */
function lastSpell(isBad: readonly boolean[], calm: number) {
  const last = isBad.lastIndexOf(true);
  if (last < 0) return undefined;
  let first = last;
  for (let i = last; i >= 0 && first - i <= calm; i--) if (isBad[i]) first = i;
  return { first, last, isOver: isBad.length - 1 - last > calm };
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}
