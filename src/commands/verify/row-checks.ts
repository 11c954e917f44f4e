import { type Check, skip } from './check.ts';
import { eachAtOnce } from './each.ts';
import { judgeRefusal } from './refusal.ts';
import { createRefusalTest, type RowProbe, rowProbes, type Verification } from './verification.ts';

const isOpenAdvice = 'nothing refuses it: the proxy has another list, or requests reach the shop around it';

/** Each GET row, asked without a token. */
export function checkRows(verification: Verification): Promise<Check[]> {
  const isRefused = createRefusalTest(verification);
  const reads = rowProbes(verification).filter(({ method }) => method === 'GET');
  return eachAtOnce(reads, verification.concurrency, async (probe) => {
    if (!isRefused('GET', probe.path)) return skip('rows', nameOf(probe), 'observe mode: it is not refused');
    const reply = await verification.client.ask({ method: 'GET', path: probe.path });
    return judgeRefusal(
      'rows',
      nameOf(probe),
      reply,
      verification.rejections['access-token-missing'],
      isOpenAdvice,
    );
  });
}

/**
 * The other rows, one after the other. Where nothing guards the shop such a request would reach it: so only when reads
 * were refused, never a DELETE without an id, those without an id last, and no more after one that was not refused.
 */
export async function checkUnsafeRows(
  verification: Verification,
  options: { readonly isWanted: boolean; readonly areReadsRefused: boolean },
): Promise<Check[]> {
  const { client, rejections } = verification;
  const isRefused = createRefusalTest(verification);
  const probes = rowProbes(verification).filter(({ method }) => method !== 'GET');
  if (probes.length === 0) return [];
  if (!options.isWanted) {
    return [skip('unsafe', `${probes.length} rows`, 'they change things; --unsafe-methods tries them too')];
  }
  if (!options.areReadsRefused) {
    return [skip('unsafe', `${probes.length} rows`, 'reads are not refused: these would reach the shop')];
  }
  const checks: Check[] = [];
  let isUnguarded = false;
  for (const probe of probes.toSorted((a, b) => Number(b.hasId) - Number(a.hasId))) {
    if (isUnguarded) checks.push(skip('unsafe', nameOf(probe), 'one before it was not refused'));
    else if (!isRefused(probe.method, probe.path))
      checks.push(skip('unsafe', nameOf(probe), 'observe mode: it would reach the shop'));
    else if (probe.method === 'DELETE' && !probe.hasId)
      checks.push(skip('unsafe', nameOf(probe), 'a DELETE without an id is never tried'));
    else {
      const reply = await client.ask({ method: probe.method, path: probe.path, body: '{}' });
      const check = judgeRefusal(
        'unsafe',
        nameOf(probe),
        reply,
        rejections['access-token-missing'],
        isOpenAdvice,
      );
      isUnguarded = check.outcome === 'failed';
      checks.push(check);
    }
  }
  return checks;
}

function nameOf({ row, method }: RowProbe): string {
  return `${method} ${row.template}`;
}
