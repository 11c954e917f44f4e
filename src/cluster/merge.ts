import type { Readiness } from '../admin/admin-server.ts';
import type { PartFact, PartState } from '../admin/state-endpoints.ts';

/** Ready when one worker is. What not all of them say is said with their number. */
export function mergeReadiness(count: number, answers: readonly Readiness[]): Readiness {
  const said = new Map<string, number>();
  for (const { reasons } of answers) {
    for (const reason of new Set(reasons)) said.set(reason, (said.get(reason) ?? 0) + 1);
  }
  const reasons = [...said].map(([reason, times]) =>
    times === count ? reason : `${reason} (${times} of ${count} workers)`,
  );
  const silent = count - answers.length;
  if (silent > 0) reasons.unshift(`${silent} of ${count} workers not serving`);
  return { ready: answers.some(({ ready }) => ready), reasons };
}

const badness = ['off', 'ok', 'limping', 'down'] as const;

/** Numbers that are the same in every process, by part; all others are added up. */
const common: Readonly<Record<string, readonly string[]>> = {
  upstream: ['answers', 'failures'],
  keys: ['usable', 'unusable'],
  'url-resolver': ['file rows'],
};

/** Each part as its worst worker has it, with the numbers of all. */
export function mergeParts(answers: readonly (readonly PartState[])[]): PartState[] {
  const [first = []] = answers;
  return first.map(({ id }) => {
    const states = answers.flatMap((parts) => parts.filter((part) => part.id === id));
    const worst = states.reduce((a, b) => (badness.indexOf(b.status) > badness.indexOf(a.status) ? b : a));
    const labels = [...new Set(states.flatMap(({ facts }) => facts.map(({ label }) => label)))];
    const facts = labels.map((label) => {
      const of = states.flatMap((state) => state.facts.filter((fact) => fact.label === label));
      return mergeFact(of, common[id]?.includes(label) === true);
    });
    return { ...worst, facts };
  });
}

function mergeFact(facts: readonly PartFact[], isCommon: boolean): PartFact {
  const [first] = facts as readonly [PartFact, ...PartFact[]];
  const numbers = facts.map(({ value }) => value).filter((value) => typeof value === 'number');
  if (numbers.length === 0) return first;
  const isLatest = first.unit !== undefined || isCommon;
  const value = isLatest ? Math.max(...numbers) : numbers.reduce((sum, number) => sum + number, 0);
  return { ...first, value };
}
