import assert from 'node:assert/strict';
import { describe, expect, it } from 'vitest';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';

const small = `# a comment with complete: true in it
groups:
  "Carts: own":
    - GET /carts
    - 'PATCH /carts/{cart_id}'
  Reports:
    - { match: "GET /reports/**", scopes: [analyst, admin], observe: true }
    - match: DELETE /reports/{id}
      scopes:
        - admin
  Ümlaut:
    - ANY /m%C3%BCll   # with a comment
complete: true
`;

/** Cuts the list off at every byte. Each result is the whole list or an error. */
function wholeOrNone(bytes: Buffer): { none: number; whole: number } {
  const whole = parseProtectedList(bytes.toString(), 'list.yaml').list?.rows;
  const seen = { none: 0, whole: 0 };
  expect(whole?.length).toBeGreaterThan(0);
  for (let length = 0; length < bytes.length; length += 1) {
    const { list, problems } = parseProtectedList(bytes.toString('utf8', 0, length), 'list.yaml');
    if (list) {
      assert.deepEqual(list.rows, whole);
      seen.whole += 1;
    } else {
      assert.ok(problems.some(({ severity }) => severity === 'error'));
      seen.none += 1;
    }
  }
  return seen;
}

describe('a list that is cut off', () => {
  it.each([
    ['every form of row', Buffer.from(small)],
    ['flow style', Buffer.from('{groups: {A: ["GET /a", {match: "GET /b"}]}, complete: true}')],
  ])('is an error, unless only the last newline is missing: %s', (_, bytes) => {
    const { none, whole } = wholeOrNone(bytes);
    // Only the newline at the very end may be missing.
    expect(whole).toBeLessThanOrEqual(1);
    expect(none).toBe(bytes.length - whole);
  });

  it('without its beginning: has all its rows or is an error', () => {
    const bytes = Buffer.from(small);
    const rows = parseProtectedList(small, 'list.yaml').list?.rows.length;
    for (let start = 1; start < bytes.length; start += 1) {
      const { list } = parseProtectedList(bytes.toString('utf8', start), 'list.yaml');
      if (list) expect(list.rows).toHaveLength(rows ?? 0);
    }
  });
});
