import type { Findings } from '../../../scripts/results.ts';
import { type HuntOptions, type HuntReport, listViolations, violationsOf } from './hunt.ts';

export function findingsOf(options: HuntOptions, report: HuntReport): Findings {
  const { verdict, applied, sightings, deeds, stuck, faults } = report;
  const command = `npm run hunt -- --redis ${options.redis} --seed ${options.seed}`;
  const details = Object.fromEntries(huntRows(options, report));
  if (options.broken !== undefined) {
    const { lost, stale } = verdict;
    return {
      title: `Hunt with a broken set-up, ${options.broken}`,
      command: `${command} --broken ${options.broken}`,
      promises: [
        {
          promise: `hunt: it finds what \`--broken ${options.broken}\` breaks`,
          measured: `${lost.length} lost updates, ${stale.length} stale 304`,
          isMet: lost.length + stale.length > 0,
        },
      ],
      details,
    };
  }
  const none = (promise: string, found: readonly unknown[]) => ({
    promise: `${options.redis}: no ${promise}`,
    measured: String(found.length),
    isMet: found.length === 0,
  });
  return {
    title: `Hunt for lost updates, ${options.redis}`,
    command,
    promises: [
      none('lost update', verdict.lost),
      none('write applied against its answer, or twice', [
        ...[...verdict.invented, ...verdict.appliedThoughRefused, ...verdict.appliedTwice],
      ]),
      none('stale or wrong 304', [...verdict.stale, ...sightings.misnamed]),
      none('stuck cart', stuck),
      none('bug in the log', faults),
    ],
    figures: [
      ['writes that the shop applied', String(applied.length)],
      ['faults', String(Object.values(deeds).reduce((sum, times) => sum + times, 0))],
    ],
    details,
  };
}

/** The run as a Markdown table, and the violations. */
export function formatHunt(options: HuntOptions, report: HuntReport): string {
  const rows = huntRows(options, report).map(([name, value]) => `| ${name} | ${value} |`);
  const found = listViolations(report).slice(0, 20);
  return ['| | |', '|---|---|', ...rows, ...found.map((one) => `- ${JSON.stringify(one)}`)].join('\n');
}

function huntRows(options: HuntOptions, report: HuntReport): readonly (readonly [string, string | number])[] {
  const { verdict, applied, sightings, deeds, shop } = report;
  const { counts, writes, notModified } = sightings;
  const told = (what: string) => writes.filter((write) => write.told === what).length;
  const status = (pattern: RegExp) =>
    Object.entries(counts).reduce((sum, [name, count]) => (pattern.test(name) ? sum + count : sum), 0);
  const through = applied.filter(({ basedOn }) => basedOn !== null).length;
  const { unknown } = verdict;
  const refusedForNoReason = verdict.needless + status(/^status 503/);
  const share = (count: number) => ((100 * count) / Math.max(1, writes.length)).toFixed(2);
  return [
    [
      'replicas, clients, carts, seconds',
      [options.replicas, options.clients, options.carts, options.seconds].join(', '),
    ],
    ['Redis, seed', `${options.redis}, ${options.seed}`],
    ['writes applied through a tag', through],
    ['writes applied without one (below a cart, new carts)', applied.length - through],
    ['writes accepted (2xx)', told('accepted')],
    ['conflicts (412)', status(/^status 412 006/)],
    ['of them needless: the state was still the one of the tag', verdict.needless],
    [
      'writes, of them refused for no reason (503, needless 412), %',
      `${writes.length}, ${share(refusedForNoReason)}`,
    ],
    ['writes of a whole collection, refused by name', status(/^collection collection-write/)],
    ['writes of a whole collection, accepted', status(/^collection 200/)],
    ['refused because the state is unknown (503)', status(/^status 503/)],
    ['refused by the shop (4xx)', status(/^status (404|409|422)/)],
    ['unknown outcomes', told('unknown')],
    ['of them applied, not applied', `${unknown.applied}, ${unknown.notApplied}`],
    ['reads with a tag, without one', `${status(/^reads with a tag/)}, ${status(/^reads without/)}`],
    [
      'reads with `If-None-Match`, of them 304',
      `${counts['reads with If-None-Match'] ?? 0}, ${notModified.length}`,
    ],
    ...Object.entries(deeds).map(([name, times]) => [name, times] as const),
    ["the shop's longest stall, ms", shop.worstStallMs ?? 0],
    ...Object.entries(violationsOf(report)).map(([name, found]) => [name, found.length] as const),
  ];
}
