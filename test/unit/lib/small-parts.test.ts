import { describe, expect, it } from 'vitest';
import { isContainer, isObject, parseJson, parseJsonObject } from '../../../src/lib/json.ts';
import { finish, finishInSlices, type Steps } from '../../../src/lib/slices.ts';

describe('JSON of others', () => {
  it.each<[string, Uint8Array | string, unknown, boolean]>([
    ['a map', '{"a":[1]}', { a: [1] }, true],
    ['a map of octets', Buffer.from('{"a":"é"}'), { a: 'é' }, true],
    ['a member twice', '{"a":1,"a":2}', { a: 2 }, true],
    ['a list', '[1]', [1], false],
    ['null', 'null', null, false],
    ['a number', '1', 1, false],
    ['nothing', '', undefined, false],
    ['no JSON', '{a:1}', undefined, false],
    ['a byte order mark', Uint8Array.of(0xef, 0xbb, 0xbf, 0x7b, 0x7d), undefined, false],
    ['no UTF-8', Uint8Array.of(0x22, 0xff, 0x22), undefined, false],
  ])('%s', (_, json, value, isMap) => {
    expect(parseJson(json)).toEqual(value);
    expect(parseJsonObject(json)).toEqual(isMap ? value : undefined);
  });

  it.each([
    [{}, true, true],
    [[], false, true],
    [null, false, false],
    ['a', false, false],
    [undefined, false, false],
  ])('%j: a map %s, has members %s', (value, isMap, hasMembers) => {
    expect([isObject(value), isContainer(value)]).toEqual([isMap, hasMembers]);
  });
});

describe('long work in steps', () => {
  function* count(to: number): Steps<number> {
    for (let i = 0; i < to; i += 1) {
      if (i === 1_000_000) throw new Error('too far');
      yield;
    }
    return to;
  }

  it('is done at once, or some of it a tick', async () => {
    expect(finish(count(1_000))).toBe(1_000);
    expect(await finishInSlices(count(1_000))).toBe(1_000);
    await expect(finishInSlices(count(1_000_001))).rejects.toThrow('too far');
  });

  it('all work together has one slice in a tick', async () => {
    let [tick, isOver, together] = [0, false, 0];
    const seen = new Map<number, number>();
    const next = () => {
      tick += 1;
      if (!isOver) setImmediate(next);
    };
    setImmediate(next);
    function* work(id: number): Steps<void> {
      for (let i = 0; i < 1_000; i += 1) {
        if ((seen.get(tick) ?? id) !== id) together += 1;
        seen.set(tick, id);
        yield;
      }
    }
    await Promise.all(Array.from({ length: 30 }, (_, id) => finishInSlices(work(id))));
    isOver = true;
    expect([together, seen.size]).toEqual([0, expect.any(Number)]);
    expect(seen.size).toBeGreaterThanOrEqual(30);
  });

  it('lets other work run between slices', async () => {
    let ticks = 0;
    let isOver = false;
    const tick = () => {
      ticks += 1;
      if (!isOver) setImmediate(tick);
    };
    setImmediate(tick);
    // It ends when other work has run, however busy the machine is; the bound fails the test if none ever runs.
    function* untilOthersRan(): Steps<void> {
      for (let i = 0; ticks < 2 && i < 5_000_000; i += 1) yield;
    }
    await finishInSlices(untilOthersRan());
    isOver = true;
    expect(ticks).toBeGreaterThan(1);
  });
});
