import { afterEach, describe, expect, it } from 'vitest';
import { counter, gauge, healthOf, total } from '../../src/lib/component.ts';
import { endAlone, hearFaults, isolate, isolated, isolateLate } from '../../src/lib/faults.ts';
import { isContainer, isObject, parseJson, parseJsonObject } from '../../src/lib/json.ts';
import { finish, finishInSlices, type Steps } from '../../src/lib/slices.ts';
import { copyText } from '../../src/lib/text.ts';
import { findConflictMark } from '../../src/lib/yaml-source.ts';

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

describe('a fault of one exchange', () => {
  afterEach(() => hearFaults(() => {}));
  const bug = (what: string) => () => {
    throw new Error(what);
  };
  const hear = () => {
    const heard: string[] = [];
    hearFaults((fault) => void heard.push((fault as Error).message));
    return heard;
  };

  it('ends that exchange, and is heard of', () => {
    const heard = hear();
    let ended = 0;
    isolate(bug('a'), () => {
      ended += 1;
    });
    isolate(
      () => {},
      () => {
        ended += 1;
      },
    );
    isolate(bug('b'));
    expect([heard, ended]).toEqual([['a', 'b'], 1]);
  });

  it('is heard of although ending it fails, and stops nobody where hearing fails', () => {
    const heard = hear();
    endAlone(new Error('a'), bug('end'));
    expect(heard).toEqual(['a']);
    hearFaults(bug('log'));
    let ended = 0;
    endAlone(new Error('b'), () => {
      ended += 1;
    });
    expect(ended).toBe(1);
  });

  it('of a listener is given what it was called with', () => {
    const heard = hear();
    const seen: unknown[] = [];
    const listener = isolated(
      (a: number, b: number, c: number) => {
        seen.push([a, b, c]);
        if (a < 0) throw new Error('negative');
      },
      (a: number) => void seen.push(a),
    );
    listener(1, 2, 3);
    listener(-1, 2, 3);
    expect([seen, heard]).toEqual([[[1, 2, 3], [-1, 2, 3], -1], ['negative']]);
  });

  it('of a promise that nobody awaits is heard of, too', async () => {
    const heard = hear();
    let ended = 0;
    isolateLate(Promise.reject(new Error('late')), () => {
      ended += 1;
    });
    isolateLate(Promise.resolve());
    await new Promise((resolve) => setImmediate(resolve));
    expect([heard, ended]).toEqual([['late'], 1]);
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

  it('is done at once, or some of it a turn', async () => {
    expect(finish(count(1_000))).toBe(1_000);
    expect(await finishInSlices(count(1_000))).toBe(1_000);
    await expect(finishInSlices(count(1_000_001))).rejects.toThrow('too far');
  });

  it('lets others have their turns', async () => {
    let turns = 0;
    let isOver = false;
    const turn = () => {
      turns += 1;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    // It ends by the turns of others, however busy the machine is; the bound is for whoever gives them none.
    function* untilOthersRan(): Steps<void> {
      for (let i = 0; turns < 2 && i < 5_000_000; i += 1) yield;
    }
    await finishInSlices(untilOthersRan());
    isOver = true;
    expect(turns).toBeGreaterThan(1);
  });
});

it.each([
  ['a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> x\n', 2],
  ['<<<<<<< HEAD\n', 0],
  ['=======\n', undefined],
  ['a: <<<<<<< b\n', undefined],
  ['======= \n<<<<<<< HEAD\n', 9],
  ['=======\r\n<<<<<<< HEAD\n', 0],
])('in %j the first mark of a merge is at %j', (text, at) => {
  expect(findConflictMark(text)).toBe(at);
});

it('a text of its own is the same text', () => {
  for (const text of ['', 'abc', '\u00e9\ud83d\ude00', '\ud83d']) expect(copyText(text)).toBe(text);
});

it('what components say of themselves', () => {
  expect([healthOf([]), healthOf(['away'], { isUnready: true })]).toEqual([
    { status: 'ok', reasons: [] },
    { status: 'degraded', reasons: ['away'], isUnready: true },
  ]);
  expect(total('n', 1)).toEqual({ label: 'n', value: 1, combine: 'sum' });
  const value = () => 5;
  expect(gauge('g', 'help', 'max', value)).toEqual({
    ...{ name: 'g', help: 'help', kind: 'gauge', combine: 'max', value },
  });
  expect(counter('c', 'help', value)).toMatchObject({ kind: 'counter', combine: 'sum' });
});
