import { describe, expect, test } from 'vitest';
import { hopByHopNames } from '../../../src/http/field-list.ts';
import type { UpstreamRequest } from '../../../src/upstream/port.ts';
import { requestHead } from '../../../src/upstream/request-framing.ts';

const headOf = (more: Partial<UpstreamRequest>) =>
  requestHead({ method: 'GET', target: '/a', fields: ['Host', 's'], body: null, ...more } as UpstreamRequest);

describe('the head of a request', () => {
  test.each([...hopByHopNames, 'content-length', 'expect'])('ignores a given field %s', (name) => {
    for (const spelling of [name, name.toUpperCase()]) {
      const fields = ['Host', 's', spelling, '7', 'X-One', '1'];
      expect(headOf({ fields })).toBe(
        'GET /a HTTP/1.1\r\nHost: s\r\nX-One: 1\r\nConnection: keep-alive\r\n\r\n',
      );
    }
  });

  test.each<Partial<UpstreamRequest>>([
    { method: 'GET /b HTTP/1.1\r\nX' },
    { method: '' },
    { target: '' },
    { target: '/a b' },
    { target: '/a\r\n' },
    { target: '/\x7f' },
    { fields: ['X One', '1'] },
    { fields: ['', '1'] },
    { fields: ['X:', '1'] },
    { fields: ['X-One', '1\n'] },
    { fields: ['X-One', '\u010a'] },
    { target: '/\u0120' },
    { fields: ['X-One', '1\r\nX: y'] },
    { fields: ['X-One', '1\0'] },
    { fields: ['X-One', '\u0100'] },
  ])('is not written with %j', (more) => {
    expect(() => headOf(more)).toThrow(TypeError);
  });
});
