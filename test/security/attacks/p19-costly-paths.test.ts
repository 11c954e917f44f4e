import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';
import { createKeptClient } from '../../harness/kept-client.ts';

const stage = useAttackStage({
  rows: [
    'ANY /a/{b}/{c}/{d}/z',
    'ANY /a/{b}/a/{c}/a/{d}/a/{e}/z',
    'ANY /{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/y',
    'ANY /a/**',
    'ANY /{a}/a/**',
    'ANY /a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/b',
  ],
});

/** The longest paths, of segments that make matchers backtrack, each with its status. */
const costly: readonly (readonly [string, number])[] = [
  ['/'.repeat(64), 200],
  ['/a'.repeat(64), 401],
  ['/a/'.repeat(31), 401],
  ['//a'.repeat(32), 401],
  ['/;'.repeat(63), 200],
  ['/a;'.repeat(63), 401],
  ['/a.'.repeat(63), 401],
  [`/${'a'.repeat(8000)}`, 200],
  [`/${'.'.repeat(8000)}x`, 200],
  [`/x${'.'.repeat(8000)}`, 200],
  [`/x${'%20'.repeat(2600)}`, 200],
  [`/${';'.repeat(8000)}`, 200],
  [`/${'%3b'.repeat(2600)}`, 200],
  [`/${'%c3%a9'.repeat(1300)}`, 200],
  [`/index.php${'/index.php'.repeat(60)}`, 200],
  [`${'/index.php/'.repeat(31)}x`, 200],
  [`/${`${'x'.repeat(120)}/`.repeat(63)}`, 200],
  [`/x?${'a[b]=c&'.repeat(1000)}`, 200],
  [`/x?${'[._+'.repeat(2000)}`, 200],
  [`/x?${'&'.repeat(50_000)}`, 200],
  [`/x?${'%5b;'.repeat(12_000)}`, 200],
  [`/x?${'%61&'.repeat(1_000)}_method=PUT`, 400],
];

/** P19: a glob compiled to a regular expression can backtrack until the test times out. */
it.each(costly.map(([target, status]) => [target.slice(0, 24), target, status] as const))(
  'P19: ten answers for %s…',
  async (_, target, expected) => {
    const client = createKeptClient(stage.port);
    for (let i = 0; i < 10; i += 1) {
      const { status } = await client.exchange(request(`POST ${target}`, ['Content-Type: application/json']));
      expect(status).toBe(expected);
    }
    client.close();
  },
);
