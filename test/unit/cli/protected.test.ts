import { describe, expect, it } from 'vitest';
import { runProtectedDiff } from '../../../src/cli/protected/difference.ts';
import { listOf } from '../access/list-text.ts';
import { makeFolder } from '../config/config-folder.ts';
import { runCommand } from './command-run.ts';

describe('protected diff', () => {
  const diff = (a: string, b: string) =>
    runCommand((io) => runProtectedDiff('a.yaml', 'b.yaml', io), {
      cwd: makeFolder({ 'a.yaml': a, 'b.yaml': b }),
    });

  it('exits 0 for lists that protect the same', async () => {
    const { code, out } = await diff(listOf('GET /a/{x}', 'GET /b'), listOf('GET /b', 'GET /A/{y}'));
    expect({ code, out }).toEqual({ code: 0, out: ['0 removed, 0 added, 0 changed; nothing looser'] });
  });

  it('marks looser rows', async () => {
    const a = `GET /gone
GET /tree/{id}
{ match: GET /was, observe: true }
{ match: GET /scoped, scopes: [x, y] }
GET /watched
{ match: GET /tighter, observe: true }
GET /basic
{ match: GET /token, credentials: shop }`;
    const b = `ANY /tree/**
{ match: GET /scoped, scopes: [x] }
{ match: GET /watched, observe: true }
GET /tighter
{ match: GET /basic, credentials: shop }
GET /token`;
    const { code, out } = await diff(listOf(...a.split('\n')), listOf(...b.split('\n')));
    expect(code).toBe(1);
    expect(out).toEqual([
      '-  GET /gone       a.yaml:3  LOOSER',
      '-  GET /tree/{id}  a.yaml:4',
      '-  GET /was        a.yaml:5',
      '~  GET /scoped     b.yaml:4  LOOSER: scopes',
      '~  GET /watched    b.yaml:5  LOOSER: observe',
      '~  GET /tighter    b.yaml:6  observe',
      '~  GET /basic      b.yaml:7  LOOSER: credentials',
      '~  GET /token      b.yaml:8  credentials',
      '+  ANY /tree/**    b.yaml:3',
      '3 removed, 1 added, 5 changed; 4 looser',
    ]);
  });

  it('marks an ANY row as looser if one method replaces it', async () => {
    const { out } = await diff(listOf('ANY /a'), listOf('GET /a'));
    expect(out[0]).toBe('-  ANY /a  a.yaml:3  LOOSER');
  });

  it('exits 78 for a list with problems', async () => {
    const { code, err } = await diff(listOf('GET /a'), 'groups: {}\n');
    expect(code).toBe(78);
    expect(err[0]).toMatch(/^b\.yaml:/);
    const gone = await runCommand((io) => runProtectedDiff('gone.yaml', 'b.yaml', io), {
      cwd: makeFolder({}),
    });
    expect(gone.err[0]).toBe('gone.yaml:1:1: error: the list cannot be read: there is no such file');
  });
});
