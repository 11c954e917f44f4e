import { describe, expect, it } from 'vitest';
import type { RejectionName } from '../../../src/http/rejection.ts';
import { Rollout } from '../../../src/rollout/rollout.ts';
import { bounds, DecisionCounts, dayMs } from '../../../src/telemetry/decision-counts.ts';
import type { ExchangeRecord } from '../../../src/telemetry/exchange-record.ts';

const carts = { method: 'GET', template: '/carts/{id}', scopes: [], observe: true } as const;
const orders = { ...carts, method: 'POST', template: '/orders' } as const;

type Options = ConstructorParameters<typeof Rollout>[0];
type Sender = Parameters<DecisionCounts['note']>[3];

/** A process that counts in its own memory. */
function start(more: Partial<Options> = {}) {
  const state = { rows: [carts] as Options['rows'] extends () => infer Rows ? Rows : never, nowMs: 5_000 };
  const counts = new DecisionCounts({ forRollout: true });
  const rollout = new Rollout({
    counts,
    ...{ keepMs: 30 * dayMs, intervalMs: 3_600_000, isObserving: () => false, rules: () => 'rules' },
    ...{ rows: () => state.rows, store: undefined, now: () => state.nowMs },
    onFault: (fault) => {
      throw fault;
    },
    ...more,
  });
  const note = (record: Partial<ExchangeRecord>, sender?: Sender, userAgent = 'app/1') => {
    const exchange = {
      method: 'GET',
      route: '/carts/{id}',
      decision: 'forwarded',
      clientAddress: '::1',
      ...record,
    };
    const request = { fields: ['User-Agent', userAgent] };
    rollout.follow();
    counts.note(exchange as ExchangeRecord, state.nowMs, request as never, sender);
  };
  const entries = async () => (await rollout.state()).here;
  const asked = async () => (await rollout.state()).askedHere['GET /carts/{id}']?.days[0] ?? 0;
  return { rollout, state, note, entries, asked };
}

const missing = { observed: 'access-token-missing' } as const;

describe('what is counted', () => {
  it('is what was refused, or would have been; else nothing', async () => {
    const { note, entries } = start();
    note({});
    expect(await entries()).toEqual([]);
    note(missing);
    note({ rejection: 'insufficient-scope', observed: 'access-token-missing', decision: 'refused' });
    expect((await entries()).map(({ kind, rejection, requests }) => [kind, rejection, requests])).toEqual([
      ['observed', 'access-token-missing', 1],
      ['refused', 'insufficient-scope', 1],
    ]);
  });

  it.each<RejectionName>(['keys-unavailable', 'url-not-found'])('is not what %s says', async (rejection) => {
    const { note, entries } = start();
    note({ rejection, decision: 'refused' });
    expect(await entries()).toEqual([]);
  });

  it('is asked of an observed row by what was not refused, and whose client waited', async () => {
    const { rollout, note, asked } = start();
    note({});
    expect(await asked()).toBe(0);
    await rollout.start();
    note({});
    note({ method: 'HEAD' });
    note(missing);
    note({ decision: 'aborted' });
    note({ rejection: 'overloaded', decision: 'refused' });
    note({ route: '/elsewhere' });
    expect(await asked()).toBe(3);
    await rollout.close();
  });

  it('HEAD counts as GET', async () => {
    const { note, entries } = start();
    for (const method of ['HEAD', 'GET', 'PUT'] as const) note({ ...missing, method });
    expect((await entries()).map(({ method, requests }) => [method, requests])).toEqual([
      ['GET', 2],
      ['PUT', 1],
    ]);
  });
});

describe('clients', () => {
  const clientsOf = async () => {
    const { note, entries } = start();
    note(missing);
    note(missing, { subject: 's'.repeat(300), clientId: undefined } as Sender);
    note(missing, { subject: 'DE--21', clientId: 'c'.repeat(300) } as Sender, 'x'.repeat(300));
    return (await entries())[0]?.clients ?? [];
  };

  it('are the application, else a digest of subject or address; all in bounds', async () => {
    const clients = await clientsOf();
    const [address, subject, application] = clients;
    expect(clients.map(({ userAgent }) => userAgent)).toEqual(['app/1', 'app/1', `${'x'.repeat(100)}…`]);
    expect([address?.client, subject?.client]).toEqual([
      expect.stringMatching(/^[0-9a-f]{12}$/),
      expect.stringMatching(/^[0-9a-f]{12}$/),
    ]);
    expect(address?.client).not.toBe(subject?.client);
    expect(application?.client).toBe(`client ${'c'.repeat(200)}…`);
    const [other] = await clientsOf();
    expect(other?.client).not.toBe(address?.client);
  });
});

it('what a process knows is of the list of now, and of its own start', async () => {
  const { rollout, state, note } = start();
  await rollout.start();
  state.rows = [carts, orders];
  state.nowMs = 6_000;
  note(missing);
  // A row is known from the first request after the edit on, not only when somebody asks.
  state.nowMs = 7_000;
  const known = await rollout.state();
  expect(known).toMatchObject({
    ...{ shared: undefined, hasStore: false, startedMs: 5_000, leftOutSinceMs: null },
    rowsSince: { 'GET /carts/{id}': 5_000, 'POST /orders': 6_000 },
  });
  expect(known.here[0]).toMatchObject({ sinceMs: 6_000, lastSeenMs: 6_000 });
  await rollout.close();
  expect((await rollout.state()).here).toHaveLength(1);
});

it('what has no place is reported with since when', async () => {
  const { state, note, rollout } = start();
  for (let i = 0; i <= bounds.reasons; i++) {
    state.nowMs = i;
    note({ ...missing, route: `/${i}` });
  }
  expect((await rollout.state()).leftOutSinceMs).toBe(bounds.reasons);
});
