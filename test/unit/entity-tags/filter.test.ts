import { describe, expect, test } from 'vitest';
import type { CanonicalRequest } from '../../../src/http/canonical-request.ts';
import { isRejection } from '../../../src/http/rejection.ts';
import { answered, ask, begin, createFilter, requestOf } from './tag-filter.ts';
import { timesOf } from './tag-store.contract.ts';

const tag = `"${'a'.repeat(32)}"`;
const patch = requestOf('PATCH', '/carts/1', ['If-Match', tag]);

describe('POST among the methods that require If-Match', () => {
  const childTag = ['If-Match', '"of-the-child"'];
  const form = { isFormPost: true } as const;
  test.each([
    ['on a member', requestOf('POST', '/carts/1'), 'if-match-missing'],
    ['below a member', requestOf('POST', '/carts/1/line-items'), 'if-match-missing'],
    ['far below a member', requestOf('POST', '/carts/1/line-items/2/options'), 'if-match-missing'],
    [
      'below a member, with a tag of the child',
      requestOf('POST', '/carts/1/line-items', childTag),
      'if-match-invalid',
    ],
    ['below a member, a form', { ...requestOf('POST', '/carts/1/line-items'), ...form }, 'if-match-missing'],
    ['of the collection', requestOf('POST', '/carts'), 'creation'],
    ['of the collection, as a form', { ...requestOf('POST', '/carts'), ...form }, 'if-match-missing'],
    ['another method below a member', requestOf('DELETE', '/carts/1/line-items/2'), 'child-write'],
    ['another method', requestOf('PATCH', '/carts/1'), 'write'],
  ])('%s: %s', async (_, request, expected) => {
    const { filter } = createFilter({ methods: ['POST'] });
    const match = filter.match(request);
    if (match === undefined || match === 'lenient' || isRejection(match)) throw new Error('no match');
    const { rule } = filter.describe(match, request, (name) => name).details as { rule: string };
    const foreseen = filter.foresee?.(match, request, Buffer.alloc(0));
    expect(typeof foreseen === 'object' ? foreseen.rejection : rule).toBe(expected);
  });

  test('a POST below a member needs the current tag, and changes it', async () => {
    const { filter } = createFilter({ methods: ['POST'] });
    const read = async () => (await ask(filter, requestOf('GET', '/carts/1'), answered(200, '{}'))).tag ?? '';
    const add = (ifMatch: string) =>
      ask(filter, requestOf('POST', '/carts/1/line-items', ['If-Match', ifMatch]), answered(201, '{}'));
    const first = await read();
    const added = await add(first);
    expect(added.status).toBe(201);
    // The shop would compare If-Match with a tag of the child, so it is removed.
    expect(added.forwarded).not.toContain('If-Match');
    expect((await add(first)).status).toBe('if-match-invalid');
    expect(await read()).not.toBe(first);
  });
});

describe('nonMembers: [search]', () => {
  test.each([
    ['POST', '/carts/search', 'untracked'],
    ['GET', '/carts/search', 'untracked'],
    ['DELETE', '/carts/search', 'untracked'],
    ['POST', '/carts/search/by-name', 'untracked'],
    ['POST', '/carts', 'creation'],
    ['POST', '/carts/1', 'precondition'],
    ['POST', '/carts/1/search', 'child-write'],
    // Another spelling is an id, or a path that is not tracked.
    ['POST', '/carts/Search', 'precondition'],
    ['POST', '/carts/search2', 'precondition'],
    ['POST', '/carts/search;x', 'precondition'],
    ['POST', '/carts/search/', 'lenient'],
    ['POST', '/carts//search', 'lenient'],
    ['POST', '/CARTS/search', 'lenient'],
    ['PATCH', '/x/carts/search', 'lenient'],
  ] as const)('%s %s: %s', (method, path, expected) => {
    const { filter } = createFilter({ nonMembers: ['search'] });
    const request = requestOf(method, path);
    const match = filter.match(request);
    if (match === undefined || match === 'lenient' || isRejection(match))
      return expect(match ?? 'untracked').toBe(expected);
    expect(filter.describe(match, request, (name) => name).details).toMatchObject({ rule: expected });
  });
});

test('if the body is not valid JSON, ignored members change the tag too', async () => {
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

describe('the hooks for the exchange with the shop', () => {
  const { firstByteByMs, sendWithinMs, answerWithinMs } = timesOf({ lease: 120_000, sendBy: 60_000 });
  const inside = { 'if-match': null, 'if-none-match': null };
  const checked = { 'If-Match': null, 'if-none-match': null, 'if-unmodified-since': null };
  const item = requestOf('POST', '/carts/1/items');
  const put = requestOf('PUT', '/carts/1');
  const byAnna = { subject: 'anna' };
  const leased = { ignoreClientAbort: 'once-sent', sendWithinMs, answerWithinMs };
  const unleased = { ignoreClientAbort: 'once-sent', sendWithinMs };

  test.each<[string, CanonicalRequest, typeof byAnna | undefined, object, boolean]>([
    ['a write with a tag', patch, byAnna, { ...leased, requestFields: checked }, true],
    ['a write without a tag', put, byAnna, { ...leased, requestFields: inside }, true],
    ['a write below a member', item, byAnna, { ...leased, requestFields: {} }, true],
    ['a write of an anonymous client', put, undefined, { ...unleased, requestFields: inside }, true],
    ['an anonymous write below a member', item, undefined, { ...unleased, requestFields: {} }, true],
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
    const hooks = await begin(filter, request, { subject: identity?.subject ?? '' });
    const { maySend, onOutcome: _settled, streamedHeaderEdits: _streamed, ...rest } = hooks;
    expect(rest).toEqual({ bufferLimit: 77, ...expected });
    if (!isTimed) return expect(maySend).toBeUndefined();
    const mayAt = (monotonic: number, wall: number) => {
      Object.assign(clock, { monotonic, wall: 1_000_000 + wall });
      return maySend?.();
    };
    // Two clocks are read, and the one on which more time has passed counts.
    expect([mayAt(firstByteByMs - 1, -5), mayAt(firstByteByMs, 0), mayAt(0, firstByteByMs)]).toEqual([
      ...[true, false, false],
    ]);
  });
});
