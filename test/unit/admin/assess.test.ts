import { describe, expect, it } from 'vitest';

type Concern = Readonly<Record<'id' | 'title' | 'text' | 'next' | 'runbook', string>> & {
  readonly link: { readonly href: string };
};

// A module of the page, without types.
const location: string = '../../../src/admin/console/assess.js';
type Assessment = { status: string; sentence: string; said?: Concern; concerns: readonly Concern[] };
const { assess } = (await import(location)) as { assess(state: object): Assessment };

const state = (more: object = {}) => ({
  mode: 'enforce',
  ready: true,
  nowMs: 1_000_000,
  startedMs: 0,
  incidents: [],
  pastIncidents: [],
  problems: [],
  parts: [],
  list: { rows: 56, observing: 0 },
  total: { requests: 9, refusals: {}, observed: {}, outages: {} },
  drift: { unlisted: [] },
  recent: { passed: 90, refused: 9, observed: 0, failed: 0 },
  ...more,
});
const store = { id: 'store', title: 'Store', status: 'down', text: 'away', sinceMs: 5 };
const incident = (more: object) => ({ ...store, ...more });
const recent = (passed: number, refused: number, failed = 0) => ({
  recent: { passed, refused, observed: 0, failed },
});
/** The concern that the sentence names, if any, and all others. */
const allOf = (more: object) => {
  const { said, concerns } = assess(state(more));
  return [...(said === undefined ? [] : [said]), ...concerns];
};

describe('the first screen', () => {
  it.each<[string, object, ...string[]]>([
    ['some rows observe', { list: { rows: 56, observing: 6 } }, 'ok', 'All is well. 50 rows enforced.'],
    [
      'many are refused, but too few for an incident',
      recent(79, 21),
      ...['notice', 'Serving; 21 % of requests are refused. 56 rows enforced.'],
    ],
    ['some fail', recent(57, 21, 2), 'notice', 'Serving; 2.5 % of requests fail. 56 rows enforced.'],
    ['too few requests to judge', recent(9, 20), 'ok', 'All is well. 56 rows enforced.'],
    [
      'a part is degraded',
      { incidents: [incident({ id: 'keys', title: 'Keys', status: 'degraded' })] },
      ...['degraded', 'Serving, but the signing keys were not refreshed'],
    ],
    ['an unknown part', { incidents: [incident({ id: 'x', title: 'Xyz' })] }, 'down', 'Xyz: down'],
    ['not ready', { ready: false }, 'down', 'Not ready to serve'],
  ])('%s', (_, more, status, sentence) => {
    expect(assess(state(more))).toMatchObject({ status, sentence });
  });

  it('reports a cause once, together with its consequences', () => {
    const incidents = [
      incident({}),
      incident({ id: 'entity-tags', title: 'Entity tags', status: 'degraded', text: 'no tags' }),
      incident({ id: 'many-failures', title: 'Requests fail', status: 'degraded', text: '40 %' }),
      incident({ id: 'keys', title: 'Keys', status: 'degraded', text: 'old' }),
    ];
    expect(allOf({ incidents }).map(({ id, text }) => [id, text])).toEqual([
      ['store', 'away. Entity tags: no tags. Requests fail: 40 %'],
      ['keys', 'old'],
    ]);
  });

  it('counts further problems, and lists each once', () => {
    const down = incident({});
    const two = [down, incident({ id: 'keys', title: 'Keys', status: 'degraded', text: 'old' })];
    const three = [...two, incident({ id: 'many-refusals', title: 'x', status: 'degraded', text: '91 %' })];
    expect(assess(state({ incidents: two })).sentence).toBe(
      'Redis cannot be used, and 1 more thing is not well',
    );
    const found = assess(state({ incidents: three, mode: 'observe' }));
    expect(found.sentence).toBe('Redis cannot be used, and 2 more things are not well');
    expect(found.said?.id).toBe('store');
    expect(found.concerns.map(({ id }) => id)).toEqual(['keys', 'many-refusals', 'observe']);
    const observing = assess(state({ mode: 'observe' }));
    expect([observing.said?.id, observing.concerns]).toEqual(['observe', []]);
  });

  it('has a title for each part, also with several issuers', () => {
    const titles = (id: string, status: string) =>
      allOf({ incidents: [incident({ id, title: 'Customers', status })] }).map(({ title }) => title);
    expect(titles('introspection', 'degraded')).toEqual(['The introspection endpoint does not answer']);
    expect(titles('keys-customers', 'down')).toEqual(['No keys to verify access tokens with (Customers)']);
  });

  it('gives each concern a next step, a view and a section of the runbook', () => {
    const unlisted = [{ method: 'GET', template: '/x', passed: 0, unauthorized: 3, forbidden: 0 }];
    const parts = 'upstream store keys entity-tags url-resolver refresh-tokens list process';
    for (const id of `${parts} many-refusals many-failures`.split(' ')) {
      const concerns = allOf({ mode: 'observe', incidents: [incident({ id })], drift: { unlisted } });
      expect(concerns.length).toBe(3);
      for (const { title, next, link, runbook } of concerns) {
        expect(title).toBeTruthy();
        expect(next.length).toBeGreaterThan(20);
        expect(link.href).toMatch(/^#\/(requests|list|system|roll-out)/);
        expect(runbook).toMatch(/^docs\/[a-z-]+\.md#/);
      }
    }
  });
});
