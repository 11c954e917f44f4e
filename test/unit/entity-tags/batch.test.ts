import { describe, expect, test } from 'vitest';
import type { Method } from '../../../src/http/canonical-request.ts';
import type { FieldList } from '../../../src/http/field-list.ts';
import { wishOf } from '../../harness/run-filter.ts';
import { answered, ask, createFilter, requestOf, type ShopAnswer } from './tag-filter.ts';

const list = { data: [{ type: 'items', id: '1' }] };
const items = { collection: '/lists/{list}/items', member: '/lists/{list}/items/{item}' } as const;

/** Tags of a collection, of its member for each of two users, and of a member of another collection. */
async function create(methods: readonly Method[] = ['PATCH', 'DELETE']) {
  const { filter, events } = createFilter({ ...items, methods, batch: 'guarded' as const }, { waitMs: 0 });
  const send = (method: Method, path: string, fields: FieldList, shop: ShopAnswer, subject = 'anna') =>
    ask(filter, requestOf(method, path, fields), shop, { subject });
  const read = async (path: string, subject: string) => {
    const { tag } = await send('GET', path, [], answered(200, list), subject);
    return tag ?? '';
  };
  const tags = {
    whole: await read('/lists/7/items', 'anna'),
    hers: await read('/lists/7/items/1', 'anna'),
    his: await read('/lists/7/items/1', 'ben'),
    other: await read('/lists/8/items/1', 'anna'),
  };
  const patch = async (path: string, tag: string, subject?: string, shop: ShopAnswer = answered(200)) =>
    (await send('PATCH', path, ['If-Match', tag], shop, subject)).status;
  return { filter, events, send, read, tags, patch };
}

describe('batch: guarded', () => {
  test.each([
    ['PATCH', true],
    ['DELETE', true],
    ['POST', false],
  ] as const)(
    'after a %s of the collection all tags of its members get 412, for every user',
    async (method, needsTag) => {
      const { send, tags, patch } = await create();
      const fields = needsTag ? ['If-Match', tags.whole] : [];
      const seen = await send(method, '/lists/7/items', fields, answered(200, list));
      expect(seen.status).toBe(200);
      expect(seen.tag === undefined).toBe(method === 'POST');
      expect(await patch('/lists/7/items/1', tags.hers)).toBe('if-match-invalid');
      expect(await patch('/lists/7/items/1', tags.his, 'ben')).toBe('if-match-invalid');
      expect(await patch('/lists/7/items', tags.whole)).toBe('if-match-invalid');
      expect(await patch('/lists/8/items/1', tags.other)).toBe(200);
    },
  );

  test('a PATCH answers with the new tag of the collection, valid for one more PATCH', async () => {
    const { send, tags, patch } = await create();
    const { tag = '' } = await send('PATCH', '/lists/7/items', ['If-Match', tags.whole], answered(200, list));
    expect(await patch('/lists/7/items', tag)).toBe(200);
    expect(await patch('/lists/7/items', tag)).toBe('if-match-invalid');
  });

  test('after a write of a member by another user the tag of the collection gets 412', async () => {
    const { tags, patch } = await create();
    expect(await patch('/lists/7/items/1', tags.his, 'ben')).toBe(200);
    expect(await patch('/lists/7/items', tags.whole)).toBe('if-match-invalid');
  });

  test('the tags of the collection and of its only member are not interchangeable', async () => {
    const { tags, patch } = await create();
    expect(await patch('/lists/7/items', tags.hers)).toBe('if-match-invalid');
    expect(await patch('/lists/7/items/1', tags.whole)).toBe('if-match-invalid');
  });

  test.each([
    ['PATCH without a tag', 'PATCH', [], 'anna', 'if-match-missing'],
    ['PATCH with *', 'PATCH', ['If-Match', '*'], 'anna', 'if-match-invalid'],
    ['POST with an old tag', 'POST', ['If-Match', `"${'0'.repeat(32)}"`], 'anna', 'if-match-invalid'],
    ['POST without an access token', 'POST', [], '', 'collection-write'],
    ['PATCH without an access token', 'PATCH', ['If-Match', `"${'0'.repeat(32)}"`], '', 'collection-write'],
    ['PUT, which methods does not name', 'PUT', [], 'anna', 'collection-write'],
  ] as const)('%s is refused and not sent', async (_, method, fields, subject, expected) => {
    const { send, tags, patch } = await create();
    const seen = await send(method, '/lists/7/items', fields, answered(200), subject);
    expect([seen.status, seen.forwarded]).toEqual([expected, undefined]);
    expect(await patch('/lists/7/items', tags.whole)).toBe(200);
  });

  test('after a change that the shop refuses all tags stay valid', async () => {
    const { send, tags, patch } = await create();
    expect((await send('POST', '/lists/7/items', [], answered(422))).status).toBe(422);
    expect(await patch('/lists/7/items', tags.whole, 'anna', answered(405))).toBe(405);
    expect(await patch('/lists/7/items/1', tags.hers)).toBe(200);
  });

  test('a POST and a write of a member exclude each other: resource-busy', async () => {
    const { send, tags, patch } = await create();
    const during: unknown[] = [];
    let inner: Promise<unknown> = Promise.resolve();
    await send('POST', '/lists/7/items', [], () => {
      inner = patch('/lists/7/items/1', tags.hers).then((status) => during.push(status));
      return answered(201);
    });
    await inner;
    expect(during).toEqual(['resource-busy']);
    const { tag = '' } = await send('GET', '/lists/7/items/1', [], answered(200, list));
    await patch('/lists/7/items/1', tag, 'anna', () => {
      inner = send('POST', '/lists/7/items', [], answered(201)).then(({ status }) => during.push(status));
      return answered(200);
    });
    await inner;
    expect(during).toEqual(['resource-busy', 'resource-busy']);
  });

  test('the body of a POST or PATCH is read before the claim', async () => {
    const { filter, tags } = await create();
    expect(wishOf(filter, requestOf('POST', '/lists/7/items'))).toBe('whole-body');
    const patched = requestOf('PATCH', '/lists/7/items', ['If-Match', tags.whole]);
    expect(wishOf(filter, patched)).toBe('whole-body');
  });
});
