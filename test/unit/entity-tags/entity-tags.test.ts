import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, test, vi } from 'vitest';
import { AnonymousRecords } from '../../../src/entity-tags/anonymous-records.ts';
import { stateOf } from '../../../src/entity-tags/keys.ts';
import { MemoryTagStore } from '../../../src/entity-tags/memory-store.ts';
import type { TagStore } from '../../../src/entity-tags/tag-store.ts';
import { fieldValue } from '../../../src/http/field-list.ts';
import { RedisUnavailable } from '../../../src/redis/faults.ts';
import { runFilter, wishOf } from '../../harness/run-filter.ts';
import { answered, ask, begin, createFilter, requestOf } from './tag-filter.ts';
import { timesOf } from './tag-store.contract.ts';

const cart = (name: string, id = '1') => ({ data: { type: 'carts', id, attributes: { name } } });
const list = (...ids: string[]) => ({ data: ids.map((id) => ({ type: 'carts', id, attributes: {} })) });
const get = (fields: string[] = [], target = '/carts/1') => requestOf('GET', target, fields);
const patch = (tag: string | undefined, target = '/carts/1') =>
  requestOf('PATCH', target, tag === undefined ? [] : ['If-Match', tag]);

async function tagOf({ filter }: ReturnType<typeof createFilter>, name = 'a'): Promise<string> {
  const { tag } = await ask(filter, get(), answered(200, cart(name)));
  expect(stateOf(tag?.slice(1, -1) ?? '')).toBeDefined();
  return tag ?? '';
}

const zipped = (text: string, level?: number) =>
  Object.assign(answered(200, '', ['Content-Encoding', 'gzip']), { body: gzipSync(text, { level }) });

/** The part of the tag that names the state, without its variant. */
const stateOfTag = (tag: string | undefined) => stateOf(tag?.slice(1, -1) ?? '');

describe('reads', () => {
  test.each<[string[], string | undefined]>([
    [[], 'no-cache'],
    [['Cache-Control', 'private'], 'private, no-cache'],
    [['Cache-Control', 'public', 'Cache-Control', 's-maxage=5'], 'public, s-maxage=5, no-cache'],
    [['Cache-Control', 'no-cache="set-cookie"'], 'no-cache="set-cookie", no-cache'],
    [['Cache-Control', 'x-max-age'], 'x-max-age, no-cache'],
    [['Cache-Control', 'private, max-age=60'], 'private, max-age=60'],
    [['Cache-Control', 'No-Store'], 'No-Store'],
    [['Cache-Control', 'public,no-cache'], 'public,no-cache'],
    [['Expires', '0'], undefined],
  ])(
    'no-cache is added unless the shop sets max-age, no-cache, no-store or Expires: %j',
    async (fields, expected) => {
      const { filter } = createFilter();
      const { tag = '', fields: first } = await ask(filter, get(), answered(200, cart('a'), fields));
      expect(fieldValue(first, 'cache-control')).toBe(expected);
      const fresh = await ask(filter, get(['If-None-Match', tag]), answered(200, cart('a'), fields));
      expect([fresh.status, fieldValue(fresh.fields, 'cache-control')]).toEqual([304, expected]);
      const { fields: missing } = await ask(filter, get(), answered(404, '', fields));
      expect(fieldValue(missing, 'cache-control')).toBe(expected);
    },
  );

  test('no 304 for a HEAD, nor for a changed body during a write', async () => {
    const under = createFilter();
    const tag = await tagOf(under);
    const known = () => get(['If-None-Match', tag]);
    const status = async (request: ReturnType<typeof get>, name = 'a') => {
      const seen = await ask(under.filter, request, answered(200, cart(name)));
      return [seen.status, stateOfTag(seen.tag)];
    };
    const state = stateOfTag(tag);
    // The state at the shop may have changed. Only a body shows that.
    for (const value of [tag, '*']) {
      const head = requestOf('HEAD', '/carts/1', ['If-None-Match', value]);
      expect(await ask(under.filter, head, answered(200, ''))).toMatchObject({ status: 200, tag });
    }

    const hooks = await begin(under.filter, patch(tag));
    expect(await status(known())).toEqual([304, state]);
    // The shop has already changed the member. The client gets the new body, under a tag that ends with the write.
    expect(await status(known(), 'patched')).toEqual([200, state]);
    await hooks.onOutcome(answered(200, cart('patched')));
    const { tag: next } = await ask(under.filter, known(), answered(200, cart('patched')));
    const fields = ['If-None-Match', next ?? ''];
    expect(next).not.toBe(tag);
    expect((await ask(under.filter, get(fields), answered(200, cart('patched')))).status).toBe(304);
  });

  test.each([
    [8 * 65_536, true],
    [8 * 65_536 + 1, false],
  ])('a compressed body of %i octets is decoded up to eight times the limit', async (length, isUnpacked) => {
    const { filter } = createFilter({}, { trackedResponseBytes: 65_536 });
    const read = async (level: number) =>
      (await ask(filter, get(), zipped(`[${' '.repeat(length - 2)}]`, level))).tag;
    // A body that is not decoded is compared in its compressed form.
    expect((await read(1)) === (await read(9))).toBe(isUnpacked);
  });

  test('a gzip answer and the plain one have the same state', async () => {
    const under = createFilter();
    const tag = await tagOf(under);
    const answer = zipped(JSON.stringify(cart('a')));
    const { tag: coded } = await ask(under.filter, get(['Accept-Encoding', 'gzip']), answer);
    expect(stateOfTag(coded)).toBe(stateOfTag(tag));
  });

  test.each([
    ['Age', '1'],
    ['Age', '86400'],
    ['Age', 'x'],
    ['Age', '0', 'Age', '5'],
  ])('no tag for an answer from a cache of the shop: %s: %s', async (...fields) => {
    const { filter, events } = createFilter();
    expect((await ask(filter, get(), answered(200, cart('a'), fields))).tag).toBeUndefined();
    expect(events).toEqual(['untracked-aged']);
    expect((await ask(filter, get(), answered(200, cart('a'), ['Age', '0']))).tag).toBeDefined();
  });

  test('another value of a field in Vary does not change the state', async () => {
    const under = createFilter();
    const vary = (...names: string[]) => names.flatMap((name) => ['Vary', name]);
    const read = async (currency: string, fields: string[], name = currency) =>
      stateOfTag(
        (await ask(under.filter, get(['X-Currency', currency]), answered(200, cart(name), fields))).tag,
      );
    const state = await read('EUR', vary('Accept, X-Currency'));
    expect(await read('USD', vary('x-currency', 'Accept'))).toBe(state);
    expect(await read('EUR', vary('X-Currency'))).toBe(state);
    // Different content for the same value is a new state.
    expect(await read('USD', vary('X-Currency'), 'other')).not.toBe(state);
    const next = await read('EUR', []);
    expect(await read('USD', [])).not.toBe(next);
  });

  test('of 2002 names in Vary, X-0 distinguishes variants and Cookie does not', async () => {
    const { filter } = createFilter();
    const many = Array.from({ length: 2000 }, (_, i) => `X-${i}`).join();
    const { tag } = await ask(filter, get(), answered(200, cart('a'), ['Vary', `Cookie, *, ${many}`]));
    const read = (field: string) =>
      ask(filter, get([field, 'x']), answered(200, cart('b'), ['Vary', `Cookie, *, ${many}`]));
    expect(stateOfTag((await read('X-0')).tag)).toBe(stateOfTag(tag));
    expect(stateOfTag((await read('Cookie')).tag)).not.toBe(stateOfTag(tag));
  });

  test('members named in ignore do not change the tag', async () => {
    const under = createFilter({ ignore: ['/data/attributes/name', '/data/none/0'] });
    expect(await tagOf(under, 'b')).toBe(await tagOf(under, 'a'));
  });

  test.each([
    ['9007199254740993', '9007199254740992'],
    ['1.0000000000000001', '1'],
    ['[-12345678901234567e2 ]', '[-12345678901234568e2 ]'],
    ['[12345678901234567,1]', '[12345678901234568,1]'],
    ['"[1234567890123456,"', '"[1234567890123457,"'],
  ])('beside members in ignore %s and %s are two states', async (one, other) => {
    const { filter } = createFilter({ ignore: ['/time'] });
    const read = async (version: string, time: string) =>
      (await ask(filter, get(), answered(200, `{"version":${version},"time":${time}}`))).tag;
    const first = await read(one, '1764230000000000001');
    expect(await read(one, '1764230000000000002')).toBe(first);
    expect(await read(other, '1764230000000000002')).not.toBe(first);
  });
});

describe('collections', () => {
  const carts = (fields: string[] = []) => get(fields, '/carts');

  test('of one member: its tag is valid for a write, and gives a 304 only for the collection', async () => {
    const { filter } = createFilter();
    const { tag = '' } = await ask(filter, carts(), answered(200, list('1')));
    expect((await ask(filter, carts(['If-None-Match', tag]), answered(200, list('1')))).status).toBe(304);
    const known = ['If-None-Match', tag];
    expect((await ask(filter, carts(known), answered(200, list('1', '2')))).status).toBe(200);
    expect((await ask(filter, get(known), answered(200, list('1')))).status).toBe(200);
    expect((await ask(filter, patch(tag), answered(200, cart('b')))).status).toBe(200);
    expect((await ask(filter, patch(tag), answered(200, cart('b')))).status).toBe('if-match-invalid');
  });

  test('a HEAD of a collection has no tag, because the number of members is unknown', async () => {
    const { filter } = createFilter();
    const read = async (...ids: string[]) => (await ask(filter, carts(), answered(200, list(...ids)))).tag;
    for (const ids of [['1'], ['1', '2']]) {
      expect(await read(...ids)).toBeDefined();
      expect((await ask(filter, requestOf('HEAD', '/carts'), answered(200, ''))).tag).toBeUndefined();
    }
  });

  test("the shop's tag of a collection does not replace the shop's tag of its one member", async () => {
    const { filter } = createFilter();
    await ask(filter, get(), answered(200, cart('a'), ['ETag', '"s1"']));
    await ask(filter, get(), answered(200, cart('a'), ['ETag', '"s2"']));
    const { tag } = await ask(filter, carts(), answered(200, list('1'), ['ETag', '"all"']));
    const { forwarded = [] } = await ask(filter, patch(tag), answered(200, cart('b')));
    expect(fieldValue(forwarded, 'if-match')).toBe('"s2"');
  });

  test.each([
    ['the body', answered(201, cart('new', '9'))],
    ['Location', answered(201, { data: {} }, ['Location', 'http://shop.example/carts/9?x=/y'])],
  ])('a creation answers with the tag of the new member, named by %s', async (_, answer) => {
    const { filter } = createFilter();
    const { tag } = await ask(filter, requestOf('POST', '/carts'), answer);
    expect(tag).toBeDefined();
    expect((await ask(filter, patch(tag, '/carts/9'), answered(200, cart('b', '9')))).status).toBe(200);
  });

  test.each([
    answered(200, cart('new', '9'), ['ETag', '"shop"']),
    answered(422, cart('new', '9'), ['ETag', '"shop"']),
    answered(201, 'x', ['ETag', '"shop"', 'Location', '/orders/of/9']),
  ])("the shop's tag is kept if the answer names no new member: row %#", async (answer) => {
    const { filter } = createFilter();
    expect((await ask(filter, requestOf('POST', '/carts'), answer)).tag).toBe('"shop"');
  });

  test.each(['PUT', 'DELETE', 'PATCH'] as const)(
    '%s of the collection is refused also where it needs no If-Match',
    async (method) => {
      const { filter } = createFilter({ methods: ['PATCH'] });
      const fields = method === 'PATCH' ? ['If-Match', `"${'0'.repeat(32)}"`] : [];
      const request = requestOf(method, '/carts', fields);
      expect(wishOf(filter, request)).toBe('head');
      expect((await ask(filter, request, answered(200))).status).toBe('collection-write');
    },
  );

  test('an anonymous read of a collection has a tag only if there is one member', async () => {
    const under = createFilter();
    const guest = (id: string) => get(['X-Anonymous-Customer-Unique-Id', id], '/carts');
    const none = { subject: '' };
    for (const ids of [[], ['1', '2']]) {
      expect((await ask(under.filter, guest('x'), answered(200, list(...ids)), none)).tag).toBeUndefined();
    }
    expect(under.events).toEqual(['untracked-stranger', 'untracked-stranger']);
    expect((await ask(under.filter, guest('x'), answered(200, list('1')), none)).tag).toBeDefined();
  });

  test('a client without a token makes two records an hour; a HEAD and a 404 make none', async () => {
    let now = 1_000;
    const anonymousRecords = new AnonymousRecords(2, () => now);
    const { filter } = createFilter({}, { anonymousRecords });
    const tagged = async (id: string, subject = '', method: 'GET' | 'HEAD' = 'GET') => {
      const request = { ...get([], `/carts/${id}`), method };
      return (await ask(filter, request, answered(200, cart('a', id)), { subject })).tag !== undefined;
    };
    expect(await tagged('1', 'anna')).toBe(true);
    for (const id of ['1', '1', '2', '2']) expect(await tagged(id)).toBe(true);
    expect(await tagged('9', '', 'HEAD')).toBe(false);
    await ask(filter, get([], '/carts/9'), answered(404), { subject: '' });
    expect(await tagged('3')).toBe(true);
    expect([await tagged('4'), await tagged('3'), await tagged('4', 'anna'), await tagged('4')]).toEqual([
      false,
      true,
      true,
      false,
    ]);
    now = 3_600_999;
    expect(await tagged('5')).toBe(false);
    now = 3_601_001;
    expect(await tagged('5')).toBe(true);
  });
});

describe('writes', () => {
  test.each([
    ['a refusal of the shop', answered(422), 200],
    ['nothing sent', { kind: 'unsent', fault: 'unreachable' }, 200],
    ['a time-out', { kind: 'unknown', fault: 'timeout' }, 'tag-store-unavailable'],
    ['500', answered(500), 'tag-store-unavailable'],
    ['202', answered(202), 'tag-store-unavailable'],
    ['408', answered(408), 'tag-store-unavailable'],
    ['302', answered(302), 'if-match-invalid'],
    ['207', answered(207), 'if-match-invalid'],
    ['412 of the shop', answered(412), 'if-match-invalid'],
  ] as const)('after %s the same tag gives %s', async (_, outcome, status) => {
    const under = createFilter();
    const tag = await tagOf(under);
    expect((await ask(under.filter, patch(tag), outcome as never)).tag).toBeUndefined();
    expect((await ask(under.filter, patch(tag), answered(200, cart('b')))).status).toBe(status);
  });

  test('the second of two writers waits for the first: 412 if it succeeded, 200 if the shop refused it', async () => {
    for (const [first, second] of [
      [answered(200, cart('b')), 'if-match-invalid'],
      [answered(422), 200],
    ] as const) {
      const under = createFilter({}, { waitMs: 60_000 });
      const tag = await tagOf(under);
      const hooks = await begin(under.filter, patch(tag));
      const waiting = ask(under.filter, patch(tag), answered(200, cart('c')));
      // The second claim is refused once before the first write ends.
      await new Promise((resolve) => setImmediate(resolve));
      await hooks.onOutcome(first);
      expect((await waiting).status).toBe(second);
    }
  });

  test('a write below a member needs no If-Match and changes the tag; with a tag of the member it is checked', async () => {
    const under = createFilter();
    const tag = await tagOf(under);
    for (const [method, target] of [
      ['POST', '/carts/1/items'],
      ['PATCH', '/carts/1/items/2'],
      ['DELETE', '/carts/1/vouchers/x'],
    ] as const) {
      expect(wishOf(under.filter, requestOf(method, target))).toBe('whole-body');
      const seen = await ask(
        under.filter,
        requestOf(method, target),
        answered(200, cart('b'), ['ETag', '"shop"']),
      );
      expect(stateOf(seen.tag?.slice(1, -1) ?? '')).toBeDefined();
      expect((await ask(under.filter, patch(tag), answered(200))).status).toBe('if-match-invalid');
      const { tag: read } = await ask(under.filter, get(), answered(200, cart('b')));
      expect(stateOfTag(read)).toBe(stateOfTag(seen.tag));
      expect((await ask(under.filter, requestOf(method, target), answered(204))).tag).toBeUndefined();
    }
    const delayed = await ask(under.filter, get(), answered(200, cart('c')));
    const checked = requestOf('POST', '/carts/1/items', ['If-Match', tag]);
    expect((await ask(under.filter, checked, answered(201))).status).toBe('if-match-invalid');
    const own = requestOf('POST', '/carts/1/items', ['If-Match', delayed.tag ?? '']);
    expect((await ask(under.filter, own, answered(201))).status).toBe(201);
    const child = requestOf('POST', '/carts/1/items', ['If-Match', '"the-shop-s-own"']);
    expect(fieldValue((await ask(under.filter, child, answered(201))).forwarded ?? [], 'if-match')).toBe(
      '"the-shop-s-own"',
    );
  });

  test.each([
    ['the member', cart('b'), [], true],
    ['the member, with another spelling of its id', cart('b', ' 001'), [], true],
    ['the member, named by Content-Location', 'anything', ['Content-Location', '/carts/1?x=y'], true],
    ['the member, named by Location', '', ['Location', 'https://shop.example/api/carts/1'], true],
    ['another member', cart('b', '2'), [], false],
    ['a child', { data: { type: 'items', id: '1' } }, [], false],
    ['a list', list('1'), [], false],
    ['a child, by Location', '', ['Location', '/carts/1/items/1'], false],
    ['another resource with that id', '', ['Location', '/orders/1'], false],
  ] as const)(
    'a write below a member returns a tag only if the answer is the member: %s',
    async (_, body, fields, isTagged) => {
      const under = createFilter();
      const seen = await ask(under.filter, requestOf('POST', '/carts/1/items'), answered(201, body, fields));
      expect(seen.tag !== undefined).toBe(isTagged);
      if (isTagged) expect((await ask(under.filter, patch(seen.tag), answered(200))).status).toBe(200);
    },
  );

  test('GET below a member, other resources and OPTIONS are not filtered', () => {
    const { filter } = createFilter();
    expect(wishOf(filter, get([], '/carts/1/items'))).toBe(false);
    expect(wishOf(filter, requestOf('PATCH', '/orders/1'))).toBe(false);
    expect(wishOf(filter, requestOf('OPTIONS', '/carts/1'))).toBe(false);
    expect(wishOf(filter, get([], '/Carts/1'))).toBe(false);
  });

  test('observe mode: a refusal is reported, the write is sent and has the lease', async () => {
    // Longer than the 500 ms for which a waiting writer has priority.
    const under = createFilter({}, { waitMs: 1000 });
    const tag = await tagOf(under);
    for (const request of [patch(undefined), patch('"x"'), patch(`"${'0'.repeat(32)}"`)]) {
      expect(wishOf(under.filter, request, true)).toBe('whole-body');
      const hooks = await begin(under.filter, request, { observed: true });
      expect(hooks).toMatchObject({ observed: { rejection: expect.stringMatching(/^if-match/) } });
      const other = await runFilter(under.filter, patch(tag), { subject: 'anna' }, Buffer.alloc(0));
      expect(other).toMatchObject({ rejection: 'resource-busy' });
      await hooks.onOutcome(answered(422));
    }
    expect(
      (await ask(under.filter, patch(undefined), answered(200, cart('b')), { observed: true })).status,
    ).toBe(200);
    expect((await ask(under.filter, patch(tag), answered(200))).status).toBe('if-match-invalid');
  });
});

describe('PUT with If-None-Match: * creates a member', () => {
  const create = (fields: string[] = ['If-None-Match', '*']) => requestOf('PUT', '/carts/1', fields);
  const methods = [
    ['where PUT needs If-Match', { methods: ['PUT'] as const }],
    ['where it does not', {}],
  ] as const;

  test.each(methods)(
    '%s: the condition is forwarded, the 201 has a tag, and a second creation gets 412',
    async (_, resource) => {
      const { filter } = createFilter(resource);
      const created = await ask(filter, create(), answered(201, '', ['ETag', '"shop"']));
      expect(created.status).toBe(201);
      expect(fieldValue(created.forwarded ?? [], 'if-none-match')).toBe('*');
      expect(fieldValue(created.forwarded ?? [], 'if-match')).toBeUndefined();
      const { tag = '' } = created;
      expect(stateOfTag(tag)).toBeDefined();
      const write = await ask(filter, patch(tag), answered(200, cart('b')));
      expect(write.status).toBe(200);
      const { tag: current } = await ask(filter, get(), answered(200, cart('b')));
      expect((await ask(filter, create(), answered(201))).status).toBe('if-match-invalid');
      expect((await ask(filter, get(), answered(200, cart('b')))).tag).toBe(current);
    },
  );

  test('without a verified token it takes no lease, and gets 412 while a tag is current', async () => {
    const { filter } = createFilter({ methods: ['PUT'] });
    const anonymous = { subject: '' };
    const hooks = await begin(filter, create(), anonymous);
    // The creation of a verified user does not wait for the anonymous one.
    expect((await ask(filter, create(), answered(201))).status).toBe(201);
    await hooks.onOutcome(answered(201));
    await ask(filter, get(), answered(200, cart('a')));
    expect((await ask(filter, create(), answered(201), anonymous)).status).toBe('if-match-invalid');
  });

  test('in observe mode the shop gets the condition', async () => {
    const { filter } = createFilter({ methods: ['PUT'] });
    await ask(filter, get(), answered(200, cart('a')));
    const seen = await ask(filter, create(), answered(412), { observed: true });
    expect(seen.status).toBe(412);
    expect(fieldValue(seen.forwarded ?? [], 'if-none-match')).toBe('*');
  });

  test('a DELETE with the same condition leaves no tag', async () => {
    const { filter } = createFilter({ methods: ['PATCH'] });
    const deletion = requestOf('DELETE', '/carts/1', ['If-None-Match', '*']);
    const { tag } = await ask(filter, deletion, answered(204));
    expect((await ask(filter, patch(tag), answered(200))).status).toBe('if-match-invalid');
  });

  test.each([
    ['with If-Match beside it', create(['If-None-Match', '*', 'If-Match', '"x"']), 'if-match-invalid'],
    ['with a list', create(['If-None-Match', '*, "x"']), 'if-match-missing'],
    ['in two lines', create(['If-None-Match', '*', 'If-None-Match', '*']), 'if-match-missing'],
    ['by PATCH', requestOf('PATCH', '/carts/1', ['If-None-Match', '*']), 'if-match-missing'],
    ['by DELETE', requestOf('DELETE', '/carts/1', ['If-None-Match', '*']), 'if-match-missing'],
    ['of the collection', requestOf('PUT', '/carts', ['If-None-Match', '*']), 'if-match-missing'],
  ])('no creation %s', async (_, request, expected) => {
    const { filter } = createFilter({ methods: ['PUT', 'PATCH', 'DELETE'] });
    expect((await ask(filter, request, answered(201))).status).toBe(expected);
  });
});

describe("an anonymous client's write that names no tag", () => {
  test.each([
    [201, 'invalid'],
    [204, 'invalid'],
    [302, 'invalid'],
    [500, 'invalid'],
    [404, 'valid'],
    [403, 'valid'],
  ])('answered with %i: the old tag is %s, the tag of the next GET is valid', async (status, tagIs) => {
    const { filter } = createFilter();
    const { tag } = await ask(filter, get(), answered(200, cart('a')));
    await ask(filter, requestOf('POST', '/carts/1/x'), answered(status), { subject: '' });
    const written = await ask(filter, patch(tag), answered(200, cart('b')));
    expect(written.status).toBe(tagIs === 'invalid' ? 'if-match-invalid' : 200);
    const next = await ask(filter, get(), answered(200, cart('c')));
    expect((await ask(filter, patch(next.tag), answered(200, cart('d')))).status).toBe(200);
  });
});

describe('the store fails when an outcome is written', () => {
  /** A store whose first two `end` calls for a write with a tag fail, with their effect or without it. */
  function failing(hasEffect: boolean): { store: MemoryTagStore; timesEnded: () => number } {
    const store = new MemoryTagStore({ times: timesOf({ lease: 120_000, sendBy: 60_000 }) });
    const end = store.end.bind(store);
    let ended = 0;
    const failTwice: TagStore['end'] = async (...of) => {
      if (!of[1].tagged) return end(...of);
      ended += 1;
      if (ended > 2) return end(...of);
      if (hasEffect) end(...of);
      throw new RedisUnavailable('timeout');
    };
    return { store: Object.assign(store, { end: failTwice }), timesEnded: () => ended };
  }

  test.each([
    [200, 'without effect', false],
    [200, 'after its effect', true],
    [422, 'without effect', false],
    [412, 'without effect', false],
  ])(
    'a PATCH answered with %i, whose end fails twice %s: the third end frees the resource',
    async (status, _, hasEffect) => {
      const { store, timesEnded } = failing(hasEffect);
      const under = createFilter({}, { store });
      const tag = await tagOf(under);
      expect((await ask(under.filter, patch(tag), answered(status, cart('b')))).tag).toBeUndefined();
      expect(under.events.filter((event) => event === 'outcome-unstored')).toHaveLength(1);
      // Long before the end of the lease.
      await vi.waitFor(() => expect(timesEnded()).toBe(3), { timeout: 10_000 });
      const old = await ask(under.filter, patch(tag), answered(200, cart('c')));
      expect(old.status).toBe(status === 422 ? 200 : 'if-match-invalid');
      const next = await tagOf(under, 'b');
      expect((await ask(under.filter, patch(next), answered(200, cart('c')))).status).toBe(200);
      expect(timesEnded()).toBe(status === 422 ? 5 : 4);
    },
  );

  test('the mark of an anonymous write that the shop has applied is repeated', async () => {
    const store = new MemoryTagStore({ times: timesOf({ lease: 120_000, sendBy: 60_000 }) });
    const under = createFilter({}, { store });
    const tag = await tagOf(under);
    const end = vi.spyOn(store, 'end');
    for (let i = 0; i < 2; i += 1) end.mockRejectedValueOnce(new RedisUnavailable('connection'));
    await ask(under.filter, requestOf('POST', '/carts/1/items'), answered(201), { subject: '' });
    await vi.waitFor(() => expect(end).toHaveBeenCalledTimes(3), { timeout: 10_000 });
    expect((await ask(under.filter, patch(tag), answered(200, cart('c')))).status).toBe('if-match-invalid');
  });

  test('the end of an unknown outcome is not repeated; the resource is busy', async () => {
    const { store, timesEnded } = failing(false);
    const { filter } = createFilter({}, { store });
    const { tag } = await ask(filter, get(), answered(200, cart('a')));
    await ask(filter, patch(tag), answered(500));
    await sleep(1_000);
    expect(timesEnded()).toBe(1);
    expect((await ask(filter, patch(tag), answered(200, cart('b')))).status).toBe('resource-busy');
  });
});

test('while the store is unavailable it is asked once for a read, and an anonymous write is refused', async () => {
  const away = async (): Promise<never> => {
    throw new RedisUnavailable('connection');
  };
  const store = Object.assign(new MemoryTagStore({ times: timesOf() }), {
    lookUp: away,
    claim: away,
    end: away,
  });
  const { filter, events } = createFilter({}, { store: Object.assign(store, { endRead: away }) });
  const shopTag = ['ETag', '"shop"'];
  const read = await ask(filter, get(['If-None-Match', '"x"']), answered(200, cart('a'), shopTag));
  expect(read).toMatchObject({ status: 200, tag: '"shop"' });
  expect(events).toEqual(['store-unavailable']);
  // The store could not note the change of this write.
  const item = requestOf('POST', '/carts/1/items');
  expect((await ask(filter, item, answered(201), { subject: '' })).status).toBe('tag-store-unavailable');
});
