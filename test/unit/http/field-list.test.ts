import { describe, expect, test } from 'vitest';
import {
  editFields,
  fieldValue,
  fieldValues,
  isNamed,
  isNeverHopByHop,
  isOws,
  readNominations,
  trimEndWhile,
  trimOws,
  trimWhile,
} from '../../../src/http/field-list.ts';

const fields = ['Host', 'a', 'X-One', '1', 'Cookie', 'x-one', 'x-ONE', '2', 'X-Ones', '3', 'X-One', ''];

describe('a list of fields', () => {
  test.each([
    ['x-one', ['1', '2', '']],
    ['host', ['a']],
    // A value is not a name.
    ['a', []],
    ['x-on', []],
    ['', []],
  ])('%j has the values %j', (name, values) => {
    expect(fieldValues(fields, name)).toEqual(values);
    expect(fieldValue(fields, name)).toBe(values[0]);
  });

  test.each<[string, Record<string, string | null>, string[]]>([
    ['nothing', {}, fields],
    ['all of a name', { 'x-one': null }, ['Host', 'a', 'Cookie', 'x-one', 'X-Ones', '3']],
    ['all by one', { 'X-One': 'n' }, ['Host', 'a', 'Cookie', 'x-one', 'X-Ones', '3', 'X-One', 'n']],
    ['one by an empty one', { host: '' }, [...fields.slice(2), 'host', '']],
    ['names that are missing', { 'x-new': '1', 'x-gone': null }, [...fields, 'x-new', '1']],
    [
      'two at once',
      { host: 'b', cookie: null },
      ['X-One', '1', 'x-ONE', '2', 'X-Ones', '3', 'X-One', '', 'host', 'b'],
    ],
  ])('edited: %s', (_, edits, edited) => {
    expect(editFields(fields, edits)).toEqual(edited);
  });

  test.each([
    ['host', true],
    ['HOST', true],
    ['Host', true],
    ['hosts', false],
    ['hos', false],
    ['cost', false],
    // The Kelvin sign: its lower case is an ASCII letter.
    ['\u212aost', false],
  ])('%j is the field host: %s', (sent, isIt) => {
    expect(isNamed(sent, 'host')).toBe(isIt);
  });
});

test.each([
  ['close', []],
  ['keep-alive', []],
  ['Close', []],
  ['Keep-Alive', []],
  ['', []],
  [' , ,', []],
  ['close, keep-alive', []],
  ['keep-alive,CLOSE', []],
  ['upgrade', ['upgrade']],
  ['keep-alive, Upgrade', ['upgrade']],
  ['X-One\t, ,close,TE', ['x-one', 'te']],
  ['closed', ['closed']],
  ['not-close', ['not-close']],
])('Connection: %j nominates %j', (value, names) => {
  expect(readNominations(value)).toEqual(names);
});

test.each([
  ...['accept', 'accept-encoding', 'accept-language', 'authorization', 'content-length', 'content-type'],
  ...['cookie', 'expect', 'host', 'if-match', 'if-none-match', 'if-modified-since', 'origin', 'range'],
  ...['transfer-encoding', 'content-anything'],
])('%s cannot be nominated away', (name) => {
  expect(isNeverHopByHop(name)).toBe(true);
});

test.each([
  'te',
  'upgrade',
  'x-content-type',
  'x-if-match',
  'x-accept',
  'hosts',
  'x-host',
  'ranges',
  'store',
])('%s can be nominated away', (name) => {
  expect(isNeverHopByHop(name)).toBe(false);
});

describe('trimming', () => {
  test('spaces and tabs are OWS, nothing else', () => {
    const found = Array.from({ length: 0x100 }, (_, code) => code).filter(isOws);
    expect(found).toEqual([0x09, 0x20]);
  });

  test.each([
    ['', '', ''],
    [' ', '', ''],
    ['\t \t', '', ''],
    ['a', 'a', 'a'],
    [' a', 'a', ' a'],
    ['a ', 'a', 'a'],
    [' a b\t', 'a b', ' a b'],
    ['\na ', '\na', '\na'],
  ])('%j trimmed is %j, trimmed at the end %j', (text, both, end) => {
    expect([trimOws(text), trimWhile(text, isOws), trimEndWhile(text, isOws)]).toEqual([both, both, end]);
  });
});
