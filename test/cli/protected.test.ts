import { describe, expect, it } from 'vitest';
import { runProtectedDiff } from '../../src/cli/protected/difference.ts';
import { runProtectedList } from '../../src/cli/protected/list.ts';
import { keys, makeFolder } from '../config/config-folder.ts';
import { runCommand } from './command-run.ts';
import { listOf } from './openapi-sample.ts';

describe('protected list', () => {
  const files = {
    'config/shopward.yaml': keys,
    'config/protected-resources.yaml': `groups:
  Carts:
    - GET /carts
    - { match: "ANY /carts/**", scopes: [a, b] }
  Orders:
    - { match: "GET /orders", observe: true }
complete: true
`,
  };
  const list = (options: object) =>
    runCommand((io) => runProtectedList(options, io), { cwd: makeFolder(files) });

  it('prints a table', async () => {
    expect(await list({})).toEqual({
      code: 0,
      out: [
        'group   method  path       needs            line',
        'Carts   GET     /carts     token            3',
        'Carts   ANY     /carts/**  token with a b   4',
        'Orders  GET     /orders    token, observed  6',
        '3 of 3 rows of config/protected-resources.yaml',
      ],
      err: [],
    });
  });

  it('prints one group, as JSON too', async () => {
    const { out } = await list({ group: 'order', json: true });
    expect(JSON.parse(out.join('\n'))).toEqual({
      file: 'config/protected-resources.yaml',
      rows: [
        {
          row: 'GET /orders',
          method: 'GET',
          path: '/orders',
          group: 'Orders',
          scopes: [],
          observe: true,
          file: 'config/protected-resources.yaml',
          line: 6,
        },
      ],
    });
  });

  it('names the groups when there is no such one', async () => {
    expect(await list({ group: 'x' })).toEqual({
      code: 1,
      out: [''],
      err: ['no group has a name like "x": there are Carts, Orders'],
    });
  });

  it.each([
    ['gone.yaml', 'gone.yaml:1:1: error: the list cannot be read: there is no such file'],
    ['config/shopward.yaml', /^config\/shopward\.yaml:1:1: error: /],
  ])('refuses a bad list: %s', async (name, problem) => {
    const { code, err } = await list({ list: name });
    expect(code).toBe(78);
    expect(err[0]).toMatch(problem);
  });
});

describe('protected diff', () => {
  const diff = (a: string, b: string, json = false) =>
    runCommand((io) => runProtectedDiff('a.yaml', 'b.yaml', { json }, io), {
      cwd: makeFolder({ 'a.yaml': a, 'b.yaml': b }),
    });

  it('exits 0 for lists that protect the same', async () => {
    const { code, out } = await diff(listOf('GET /a/{x}', 'GET /b'), listOf('GET /b', 'GET /a/{x}'));
    expect({ code, out }).toEqual({ code: 0, out: ['0 removed, 0 added, 0 changed; nothing looser'] });
  });

  it('marks what becomes looser', async () => {
    const a = listOf(
      'GET /gone',
      'GET /tree/{id}',
      '{ match: GET /was, observe: true }',
      '{ match: GET /scoped, scopes: [x, y] }',
      'GET /watched',
      '{ match: GET /tighter, observe: true }',
    );
    const b = listOf(
      'ANY /tree/**',
      '{ match: GET /scoped, scopes: [x] }',
      '{ match: GET /watched, observe: true }',
      'GET /tighter',
    );
    const { code, out } = await diff(a, b);
    expect(code).toBe(1);
    expect(out).toEqual([
      '-  GET /gone       a.yaml:3  LOOSER: open now',
      '-  GET /tree/{id}  a.yaml:4  still met by ANY /tree/** in line 3',
      '-  GET /was        a.yaml:5  it was observed only',
      '+  ANY /tree/**    b.yaml:3',
      '~  GET /scoped     b.yaml:4  LOOSER: scopes x y -> x',
      '~  GET /watched    b.yaml:5  LOOSER: only observed now',
      '~  GET /tighter    b.yaml:6  enforced now',
      '3 removed, 1 added, 3 changed; 3 looser',
    ]);
    const report = JSON.parse((await diff(a, b, true)).out.join('\n'));
    expect(report).toMatchObject({ same: false, loosenings: 3 });
    expect(report.removed.map((row: { isLooser: boolean }) => row.isLooser)).toEqual([true, false, false]);
  });

  it('of a whole ANY row that one method replaces', async () => {
    const { out } = await diff(listOf('ANY /a'), listOf('GET /a'));
    expect(out[0]).toBe('-  ANY /a  a.yaml:3  LOOSER: open now');
  });

  it('exits 78 for a list with problems', async () => {
    const { code, err } = await diff(listOf('GET /a'), 'groups: {}\n');
    expect(code).toBe(78);
    expect(err[0]).toMatch(/^b\.yaml:/);
  });
});
