import { type Check, skip } from './check.ts';
import { eachAtOnce } from './each.ts';
import { checkRefusal } from './refusal.ts';
import { createRefusalTest, type RowProbe, rowProbes, type Verification } from './verification.ts';

const isOpenAdvice = 'nothing refuses it: the proxy has another list, or requests reach the shop around it';

/** Each GET row, asked without a token. */
export function checkRows(verification: Verification): Promise<Check[]> {
  const isRefused = createRefusalTest(verification);
  const reads = rowProbes(verification).filter(({ method }) => method === 'GET');
  return eachAtOnce(reads, verification.concurrency, async (probe) => {
    if (!isRefused('GET', probe.path)) return skip('rows', nameOf(probe), 'observe mode: it is not refused');
    const reply = await verification.client.ask({ method: 'GET', path: probe.path });
    return checkRefusal(
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
  const inTurn: UnsafeProbe[] = [
    ...probes.toSorted((a, b) => Number(b.hasId) - Number(a.hasId)),
    ...overrides(probes),
  ];
  for (const probe of inTurn) {
    const name = nameOf(probe);
    if (isUnguarded) checks.push(skip('unsafe', name, 'one before it was not refused'));
    else if (!isRefused(probe.method, probe.path))
      checks.push(skip('unsafe', name, 'observe mode: it would reach the shop'));
    else if (probe.method === 'DELETE' && !probe.hasId)
      checks.push(skip('unsafe', name, 'a DELETE without an id is never tried'));
    else {
      const { path, query = '', fields = {} } = probe;
      const method = probe.override === undefined ? probe.method : 'POST';
      const reply = await client.ask({ method, path: path + query, fields, body: '{}' });
      const expected = probe.override === undefined ? 'access-token-missing' : 'method-override';
      const check = checkRefusal('unsafe', name, reply, rejections[expected], isOpenAdvice);
      isUnguarded = check.outcome === 'failed';
      checks.push(check);
    }
  }
  return checks;
}

interface UnsafeProbe extends RowProbe {
  readonly override?: string;
  readonly query?: string;
  readonly fields?: Readonly<Record<string, string>>;
}

/** A DELETE or PATCH that says POST: the shop acts on the method that is named in the query or in a field. */
function overrides(probes: readonly RowProbe[]): UnsafeProbe[] {
  const probe = probes.find(({ method, hasId }) => hasId && (method === 'DELETE' || method === 'PATCH'));
  if (probe === undefined) return [];
  const { method } = probe;
  return [
    { ...probe, override: `?_method=${method}`, query: `?_method=${method}` },
    { ...probe, override: 'X-HTTP-Method-Override', fields: { 'X-HTTP-Method-Override': method } },
  ];
}

function nameOf({ row, method, override }: UnsafeProbe): string {
  return override === undefined
    ? `${method} ${row.template}`
    : `POST ${row.template} as ${method} by ${override}`;
}
