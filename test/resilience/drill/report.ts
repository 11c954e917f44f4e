import type { Findings } from '../../../scripts/results.ts';
import type { OutageResult } from './outage.ts';
import { kinds } from './tally.ts';

export function findingsOf(results: readonly OutageResult[]): Findings {
  const wrongs = results.flatMap(({ wrongs }) => wrongs);
  return {
    title: 'Outages, seen by clients and operators',
    command: 'npm run drill',
    promises: [
      {
        promise: 'outage: every answer, log line and readiness message is one that the outage allows',
        measured: wrongs.length === 0 ? 'all' : `all but ${wrongs.length}`,
        isMet: wrongs.length === 0,
      },
    ],
    figures: [
      ['kinds of outage', String(results.length)],
      ...kinds.map((kind) => {
        const longest = Math.max(0, ...results.map(({ tally }) => tally.longestMs[kind]));
        return [
          `longest wait of one client for a ${kind}, all tries together`,
          `${(longest / 1000).toFixed(1)} s`,
        ] as const;
      }),
    ],
    details: results.map((result) => ({ outage: rowOf(result), wrongs: result.wrongs })),
  };
}

/** What clients saw, how long they waited at most, what was in the log and at `/readyz`. */
export function rowOf({ name, tally, operators }: OutageResult): readonly string[] {
  const events = new Map<string, number>();
  for (const operator of operators) {
    for (const [event, times] of operator.events()) events.set(event, (events.get(event) ?? 0) + times);
  }
  const lines = [...events.values()].reduce((sum, times) => sum + times, 0);
  const requests = operators.reduce((sum, operator) => sum + operator.requestLines(), 0);
  const reasons = new Set(operators.flatMap((operator) => [...operator.reasons]));
  const unready = operators.reduce((sum, operator) => sum + operator.unready, 0);
  const silent = operators.reduce((sum, operator) => sum + operator.unanswered, 0);
  const probes = [
    ...(unready === 0 ? [] : [`${unready} x 503`]),
    ...(silent === 0 ? [] : [`${silent} x no answer`]),
    ...[...reasons].map((reason) => `"${reason}"`),
  ];
  return [
    name,
    ...kinds.map((kind) => tally.format(kind)),
    kinds.map((kind) => `${(tally.longestMs[kind] / 1000).toFixed(1)} s`).join(', '),
    `${lines}${lines === 0 ? '' : `: ${[...events].map(([event, times]) => `${times} x \`${event}\``).join(', ')}`} (and ${requests} of requests)`,
    probes.length === 0 ? 'nothing' : probes.join('; '),
  ];
}
