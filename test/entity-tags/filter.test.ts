import { describe, expect, test, vi } from 'vitest';
import { createEntityTagMatcher } from '../../src/entity-tags/filter.ts';
import { MemoryTagStore } from '../../src/entity-tags/memory-store.ts';
import { fingerprintWithout } from '../../src/entity-tags/representation.ts';
import type { ClaimAnswer, TagStore } from '../../src/entity-tags/tag-store.ts';
import type { CanonicalRequest } from '../../src/http/canonical-request.ts';
import { isAnswer, isRejection } from '../../src/http/rejection.ts';
import { runFilter } from '../harness/run-filter.ts';
import { answered, ask, carts, createFilter, requestOf } from './tag-filter.ts';
import { timesOf } from './tag-store.contract.ts';

const tag = `"${'a'.repeat(32)}"`;
const patch = requestOf('PATCH', '/carts/1', ['If-Match', tag]);
const bare = requestOf('PATCH', '/carts/1');

describe('what is known of a request before anybody is asked', () => {
  const matcher = createEntityTagMatcher([carts], { ignoredPrefixes: [] });
  const known = (request: CanonicalRequest, isObserved = false) => {
    const match = matcher.match(request);
    if (match === undefined) return 'none';
    if (isRejection(match)) return match.rejection;
    const foreseen = matcher.foresee?.(match, request, Buffer.alloc(0));
    return [
      matcher.refusal?.(match)?.rejection ?? 'goes on',
      matcher.wantsBody?.(match, request, isObserved) ? 'whole body' : 'streams',
      isRejection(foreseen as never) ? (foreseen as { rejection: string }).rejection : typeof foreseen,
    ].join(', ');
  };

  test.each<[string, CanonicalRequest, string, string]>([
    ['a read', requestOf('GET', '/carts/1'), 'goes on, streams, undefined', 'streams'],
    ['a creation', requestOf('POST', '/carts'), 'goes on, streams, undefined', 'streams'],
    ['a write', patch, 'goes on, whole body, string', 'whole body'],
    ['a write without If-Match', bare, 'goes on, streams, if-match-missing', 'whole body'],
    [
      'a write that If-None-Match forbids for that very tag',
      requestOf('PATCH', '/carts/1', ['If-Match', tag, 'If-None-Match', tag]),
      'goes on, streams, if-match-invalid',
      'whole body',
    ],
    [
      'the same below a member, where it is about a child',
      requestOf('POST', '/carts/1/items', ['If-Match', tag, 'If-None-Match', tag]),
      'goes on, whole body, string',
      'whole body',
    ],
    [
      'a write below a member',
      requestOf('POST', '/carts/1/items'),
      'goes on, whole body, undefined',
      'whole',
    ],
    [
      'another spelling',
      requestOf('PATCH', '/Carts/1', ['If-Match', tag]),
      'lenient-spelling, streams, undefined',
      'streams',
    ],
    ['an empty id', requestOf('PATCH', '/carts/'), 'resource-id-missing', ''],
    ['the same', requestOf('DELETE', '/carts/'), 'resource-id-missing', ''],
    ['a creation after a slash', requestOf('POST', '/carts/'), 'goes on, streams, undefined', 'streams'],
    [
      'a form POST after a slash, which may be of any method',
      { ...requestOf('POST', '/carts/'), isFormPost: true },
      'lenient-spelling, streams, undefined',
      'streams',
    ],
    ['another resource', requestOf('PATCH', '/wishlists/1'), 'none', ''],
    ...['/carts', '/carts/1', '/Carts/1', '/carts/1/items', '/carts/'].flatMap((path) =>
      (['OPTIONS', 'PROPFIND', 'REPORT', 'SEARCH', 'QUERY'] as const).map(
        (method): [string, CanonicalRequest, string, string] => [
          `${method} ${path}`,
          requestOf(method, path),
          'none',
          '',
        ],
      ),
    ),
  ])('%s', (_, request, expected, observed) => {
    expect(known(request)).toBe(expected);
    expect(known(request, true)).toContain(observed);
  });

  test('a change of the whole collection is refused, and its body is read where that is only observed', () => {
    const request = requestOf('DELETE', '/carts', ['If-Match', tag]);
    expect(known(request)).toBe('goes on, streams, collection-write');
    expect(known(request, true)).toBe('goes on, whole body, collection-write');
  });
});

describe('POST among the methods that require If-Match', () => {
  const childTag = ['If-Match', '"of-the-child"'];
  const form = { isFormPost: true } as const;
  test.each([
    ['on a member', requestOf('POST', '/carts/1'), 'if-match-missing'],
    ['below it', requestOf('POST', '/carts/1/line-items'), 'if-match-missing'],
    ['far below it', requestOf('POST', '/carts/1/line-items/2/options'), 'if-match-missing'],
    [
      'below it, with a tag of the child',
      requestOf('POST', '/carts/1/line-items', childTag),
      'if-match-invalid',
    ],
    ['below it, as a form', { ...requestOf('POST', '/carts/1/line-items'), ...form }, 'if-match-missing'],
    ['of the collection', requestOf('POST', '/carts'), 'creation'],
    ['of the collection after a slash', requestOf('POST', '/carts/'), 'creation'],
    ['of the collection, as a form', { ...requestOf('POST', '/carts'), ...form }, 'if-match-missing'],
    ['another method below it', requestOf('DELETE', '/carts/1/line-items/2'), 'child-write'],
    ['another method', requestOf('PATCH', '/carts/1'), 'write'],
  ])('%s: %s', async (_, request, expected) => {
    const { filter } = createFilter({ methods: ['POST'] });
    const match = filter.match(request);
    if (match === undefined || match === 'lenient' || isRejection(match)) throw new Error('no match');
    const { rule } = filter.describe(match, request, (name) => name).details as { rule: string };
    const foreseen = filter.foresee?.(match, request, Buffer.alloc(0));
    expect(typeof foreseen === 'object' ? foreseen.rejection : rule).toBe(expected);
  });

  test('a child is added under the current tag alone, and the tag changes', async () => {
    const { filter } = createFilter({ methods: ['POST'] });
    const read = async () => (await ask(filter, requestOf('GET', '/carts/1'), answered(200, '{}'))).tag ?? '';
    const add = (ifMatch: string) =>
      ask(filter, requestOf('POST', '/carts/1/line-items', ['If-Match', ifMatch]), answered(201, '{}'));
    const first = await read();
    const added = await add(first);
    expect(added.status).toBe(201);
    // Below a member the shop's tags are of children: it is not asked about one of the member.
    expect(added.forwarded).not.toContain('If-Match');
    expect((await add(first)).status).toBe('if-match-invalid');
    expect(await read()).not.toBe(first);
  });
});

test.each([
  [0, 'If-None-Match with it gives 304'],
  [5000, 'If-None-Match with it gives 304, from the store for 5 s'],
])('that a 304 may come from the store is told where it may: %i ms', (freshForMs, end) => {
  const matcher = createEntityTagMatcher([{ ...carts, freshForMs }], { ignoredPrefixes: [] });
  const request = requestOf('GET', '/carts/1');
  const { text } = matcher.describe(matcher.match(request) as never, request, (name) => name);
  expect(text.endsWith(end)).toBe(true);
});

test.each([
  ['one beside the other', '/wishlists', '/wishlists/{id}', undefined],
  ['of which one begins like the other', '/carts-of-old', '/carts-of-old/{id}', undefined],
  ['one below the other', '/carts/{id}/items', '/carts/{id}/items/{item}', 'lies below'],
  ['one below the other in another case', '/Carts/{id}/items', '/Carts/{id}/items/{item}', 'lies below'],
  ['a member elsewhere', '/wishlists', '/lists/{id}', 'a member is its collection'],
  ['a member of two parameters', '/wishlists', '/wishlists/{id}/{item}', 'a member is its collection'],
  ['a member without a parameter', '/wishlists', '/wishlists/mine', 'a member is its collection'],
])('two resources: %s', (_, collection, member, problem) => {
  for (const order of [(all: object[]) => all, (all: object[]) => all.toReversed()]) {
    const both = order([carts, { ...carts, collection, member }]) as (typeof carts)[];
    const compile = () => createEntityTagMatcher(both, { ignoredPrefixes: [] });
    if (problem === undefined) expect(compile).not.toThrow();
    else expect(compile).toThrow(problem);
  }
});

describe('a claim that is not granted', () => {
  test.each<[ClaimAnswer, string, string]>([
    [{ kind: 'cold-start', remainingMs: 2001 }, 'hold', 'tag-store-unavailable hold 3'],
    [{ kind: 'indeterminate', remainingMs: 1 }, 'quiet', 'tag-store-unavailable quiet 1'],
    [{ kind: 'busy', remainingMs: 0 }, 'lease-busy', 'resource-busy lease-busy 1'],
    [{ kind: 'not-replicated' }, 'store-unavailable', 'tag-store-unavailable not-replicated 1'],
    [{ kind: 'not-current' }, 'precondition-failed', 'if-match-invalid not-current undefined'],
  ])('%j', async (answer, event, refusal) => {
    const { filter, events } = open({ claim: () => answer });
    const refused = await runFilter(filter, patch, { subject: 'anna' }, Buffer.from('{}'));
    if (!isRejection(refused)) throw new Error('not refused');
    expect(`${refused.rejection} ${refused.reason} ${refused.retryAfterSeconds}`).toBe(refusal);
    expect(events).toEqual([event]);
  });

  test.each([
    ['busy', patch, []],
    ['not-current', patch, []],
    // One replica may have it, and be the primary next.
    ['not-replicated', patch, [{ tagged: true, outcome: 'unsent' }]],
    ['not-replicated', requestOf('PUT', '/carts/1'), [{ tagged: false, outcome: 'unsent' }]],
  ])('%s: given back is only what may have been granted', async (kind, request, expected) => {
    const given: unknown[] = [];
    const { filter } = open({
      claim: () => ({ kind, remainingMs: 0 }) as ClaimAnswer,
      end: (_, write) => {
        given.push(write);
        return null;
      },
    });
    await runFilter(filter, request, { subject: 'anna' }, Buffer.from('{}'));
    expect(given).toMatchObject(expected);
    expect(given).toHaveLength(expected.length);
  });
});

describe('the store is asked before a read only where it may answer instead of the shop', () => {
  const known = ['If-None-Match', tag];
  test.each([
    ['of a member that may be fresh', 1000, '/carts/1', known, 'anna', 1],
    ['of one that may not', 0, '/carts/1', known, 'anna', 0],
    ['without If-None-Match', 1000, '/carts/1', [], 'anna', 0],
    ['of a collection', 1000, '/carts', known, 'anna', 0],
    ['by a stranger', 1000, '/carts/1', known, undefined, 0],
  ])('%s', async (_, freshForMs, target, fields, subject, times) => {
    const store = new MemoryTagStore({ times: timesOf() });
    const lookUp = vi.spyOn(store, 'lookUp');
    const { filter } = createFilter({ freshForMs }, { store });
    await runFilter(filter, requestOf('GET', target, fields), subject ? { subject } : undefined);
    expect(lookUp).toHaveBeenCalledTimes(times);
  });
});

describe('what is asked of the exchange with the shop', () => {
  const { firstByteByMs, sendWithinMs, answerWithinMs } = timesOf({ leaseMs: 120_000, sendByMs: 60_000 });
  const inside = { 'if-match': null, 'if-none-match': null };
  const item = requestOf('POST', '/carts/1/items');
  const put = requestOf('PUT', '/carts/1');
  const byAnna = { subject: 'anna' };
  const leased = { ignoreClientAbort: true, sendWithinMs, answerWithinMs };
  const unleased = { ignoreClientAbort: true, sendWithinMs };

  test.each<[string, CanonicalRequest, typeof byAnna | undefined, object, boolean]>([
    ['a write with a tag', patch, byAnna, { ...leased, requestFields: inside }, true],
    ['a write without', put, byAnna, { ...leased, requestFields: inside }, true],
    ['a write below', item, byAnna, { ...leased, requestFields: {} }, true],
    ['a write of a stranger', put, undefined, { ...unleased, requestFields: inside }, true],
    ['a write of a stranger below', item, undefined, { ...unleased, requestFields: {} }, true],
    ['a creation', requestOf('POST', '/carts'), byAnna, { requestFields: inside }, false],
    ['a read', requestOf('GET', '/carts/1'), byAnna, { requestFields: undefined }, false],
  ])('%s', async (_, request, identity, expected, isTimed) => {
    const clock = { monotonic: 0, wall: 1_000_000 };
    const granting = { claim: () => ({ kind: 'granted', shopTag: null }) };
    const { filter } = createFilter(
      {},
      {
        ...{ monotonic: () => clock.monotonic, now: () => clock.wall, trackedResponseBytes: 77 },
        ...(request === patch && { store: granting as never }),
      },
    );
    const hooks = await runFilter(filter, request, identity, Buffer.from('{}'));
    if (hooks === undefined || isAnswer(hooks) || isRejection(hooks)) throw new Error('not forwarded');
    const { maySend, onOutcome: _settled, streamedHeaderEdits: _streamed, ...rest } = hooks;
    expect(rest).toEqual({ bufferLimit: 77, ...expected });
    if (!isTimed) return expect(maySend).toBeUndefined();
    const mayAt = (monotonic: number, wall: number) => {
      Object.assign(clock, { monotonic, wall: 1_000_000 + wall });
      return maySend?.();
    };
    // The larger of two clocks.
    expect([mayAt(firstByteByMs - 1, -5), mayAt(firstByteByMs, 0), mayAt(0, firstByteByMs)]).toEqual([
      ...[true, false, false],
    ]);
  });
});

test('a document that is digested in slices has a tag as any other has', async () => {
  const { filter } = createFilter({}, { trackedResponseBytes: 1_000_000 });
  const read = (last: string, fields: string[] = []) =>
    ask(filter, requestOf('GET', '/carts/1', fields), answered(200, `{"x":"${'x'.repeat(300_000)}${last}"}`));
  const first = await read('a');
  expect(first.tag).toBeDefined();
  expect((await read('a')).tag).toBe(first.tag);
  expect((await read('a', ['If-None-Match', first.tag ?? ''])).status).toBe(304);
  expect((await read('b')).tag).not.toBe(first.tag);
});

test('what cannot be parsed counts as a whole: a change of what is ignored changes its tag', async () => {
  const { filter } = createFilter({ ignore: ['/data/x'] });
  const read = async (body: string) =>
    (await ask(filter, requestOf('GET', '/carts/1'), answered(200, body))).tag;
  const first = await read('{"data":{"x":1}}');
  expect(await read('{"data":{"x":2}}')).toBe(first);
  const cut = await read('{"data":{"x":1');
  expect([undefined, first]).not.toContain(cut);
  expect(await read('{"data":{"x":1')).toBe(cut);
  expect(await read('{"data":{"x":2')).not.toBe(cut);
});

describe('a digest without what changes by itself', () => {
  const digestOf = (text: string) => fingerprintWithout(Buffer.from(text), ['/x']);
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

  test.each<[string, string, boolean]>([
    ['as deep as may be', nested(256), true],
    ['deeper', nested(257), false],
    ['brackets after a text of one letter', `["a",${nested(256)}]`, false],
    ['brackets of a text', `["${'['.repeat(300)}"]`, true],
    ['brackets of a text after an escaped quote', `["\\"${'['.repeat(300)}"]`, true],
    ['closing ones of a text make room for none', `["${']'.repeat(300)}",${nested(256)}]`, false],
    ['a text that ends with an escaped backslash', `["\\\\",${nested(256)}]`, false],
    ['members side by side', `[${'[],'.repeat(300)}{}]`, true],
    ['as long as may be', `"${'x'.repeat(262_142)}"`, true],
    ['longer', `"${'x'.repeat(262_143)}"`, false],
    ['no JSON', '{', false],
  ])('%s', (_, text, hasOne) => {
    expect(digestOf(text) !== null).toBe(hasOne);
  });

  test('leaves out the member that is named, and nothing else', () => {
    const one = digestOf('{"x":1,"y":1}');
    expect(digestOf('{"x":2,"y":1}')).toBe(one);
    expect(digestOf('{"x":1,"y":2}')).not.toBe(one);
  });
});

function open(calls: Partial<TagStore>) {
  const store = new MemoryTagStore({ times: timesOf({ leaseMs: 120_000, sendByMs: 60_000 }) });
  return createFilter({}, { store: Object.assign(store, calls) as never, waitMs: 0 });
}
