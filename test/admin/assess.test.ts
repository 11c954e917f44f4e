import { describe, expect, it } from 'vitest';

interface Concern {
  readonly id: string;
  readonly title: string;
  readonly text: string;
  readonly next: string;
  readonly link: { readonly href: string };
  readonly book: string;
}

// A module of the page, without types of its own.
const place: string = '../../src/admin/console/assess.js';
const { assess } = (await import(place)) as {
  assess(state: object): { status: string; sentence: string; sinceMs?: number; concerns: readonly Concern[] };
};

const timeline = (more: object = {}) => {
  const none = () => new Array(60).fill(0);
  return {
    stepMs: 5_000,
    endMs: 1_000_000,
    passed: none(),
    refused: none(),
    observed: none(),
    failed: none(),
    ...more,
  };
};
const at = (times: number) => [...new Array(58).fill(0), times, 0];
const state = (more: object = {}) => ({
  mode: 'enforce',
  ready: true,
  nowMs: 1_000_000,
  startedMs: 0,
  incidents: [],
  problems: [],
  list: { rows: 56, observing: 0 },
  total: { requests: 9, refusals: {}, observed: {}, outages: {} },
  drift: { unlisted: [] },
  timeline: timeline(),
  ...more,
});
const incident = (more: object) => ({
  id: 'store',
  title: 'Store',
  status: 'down',
  text: 'away',
  sinceMs: 5,
  ...more,
});
const idsOf = (more: object) => assess(state(more)).concerns.map(({ id }) => id);

describe('the first screen', () => {
  it.each([
    ['all is well', {}, 'ok', 'All is well. 56 rows enforced.'],
    [
      'nothing came yet',
      { total: { requests: 0, refusals: {}, observed: {}, outages: {} } },
      'ok',
      'Ready, and waiting for the first request. 56 rows enforced.',
    ],
    ['observe mode', { mode: 'observe' }, 'notice', 'All is well. Observe mode: nothing is enforced.'],
    ['some rows observe', { list: { rows: 56, observing: 6 } }, 'ok', 'All is well. 50 rows enforced.'],
    ['a part is down', { incidents: [incident({})] }, 'down', 'Redis cannot be used'],
    [
      'a part is degraded',
      { incidents: [incident({ id: 'keys', title: 'Keys', status: 'degraded' })] },
      'degraded',
      'Serving, but the signing keys were not refreshed',
    ],
    ['a part nobody knew of', { incidents: [incident({ id: 'x', title: 'Xyz' })] }, 'down', 'Xyz: down'],
    ['not ready', { ready: false }, 'down', 'Not ready to serve'],
  ])('%s', (_, more, status, sentence) => {
    expect(assess(state(more))).toMatchObject({ status, sentence });
  });

  it('tells a cause once, with what follows from it', () => {
    const incidents = [
      incident({}),
      incident({ id: 'entity-tags', title: 'Entity tags', status: 'degraded', text: 'no tags' }),
      incident({ id: 'keys', title: 'Keys', status: 'degraded', text: 'old' }),
    ];
    const { concerns } = assess(state({ incidents }));
    expect(concerns.map(({ id, text }) => [id, text])).toEqual([
      ['store', 'away. Entity tags: no tags'],
      ['keys', 'old'],
    ]);
  });

  it('knows many refusals and many failures from few', () => {
    expect(idsOf({ timeline: timeline({ refused: at(40), passed: at(10) }) })).toEqual(['many-refusals']);
    expect(idsOf({ timeline: timeline({ refused: at(10), passed: at(40) }) })).toEqual([]);
    expect(idsOf({ timeline: timeline({ refused: at(20) }) })).toEqual([]);
    expect(idsOf({ timeline: timeline({ failed: at(10), passed: at(40) }) })).toEqual(['many-failures']);
    const incidents = [incident({ id: 'upstream' })];
    expect(idsOf({ timeline: timeline({ failed: at(50) }), incidents })).toEqual(['upstream']);
    const { sinceMs } = assess(state({ timeline: timeline({ refused: at(40) }) }));
    expect(sinceMs).toBe(990_000);
  });

  it('gives each concern a next step, a place of the page and a page of the run book', () => {
    const unlisted = [{ method: 'GET', template: '/x', passed: 0, unauthorized: 3, forbidden: 0 }];
    const ids = [
      'upstream',
      'store',
      'keys',
      'entity-tags',
      'url-resolver',
      'refresh-tokens',
      'list',
      'process',
    ];
    for (const id of ids) {
      const { concerns } = assess(
        state({ mode: 'observe', incidents: [incident({ id })], drift: { unlisted } }),
      );
      for (const { title, next, link, book } of concerns) {
        expect(title).toBeTruthy();
        expect(next.length).toBeGreaterThan(20);
        expect(link.href).toMatch(/^#\/(requests|list|system|roll-out)/);
        expect(book).toMatch(/^docs\/[a-z]+\.md/);
      }
    }
  });
});
