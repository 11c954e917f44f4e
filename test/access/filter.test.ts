import { describe, expect, test } from 'vitest';
import type { Authenticate } from '../../src/access/authenticate.ts';
import { createAccessTokenFilter, createAccessTokenMatcher } from '../../src/access/filter.ts';
import type { ProtectedList, Requirement } from '../../src/access/protected-list.ts';
import type { CanonicalRequest } from '../../src/http/canonical-request.ts';
import { type RejectionName, reject, rejectionTable } from '../../src/http/rejection.ts';
import type { FilterContext } from '../../src/proxy/filter.ts';

const request = { path: '/carts' } as CanonicalRequest;
const row = { scopes: ['a', 'b'] } as unknown as Requirement;
const somebody = {
  identity: { subject: 'DE--21', claimedSubject: 'DE--21', scopes: [], expiresAtMs: 1 },
  request,
};

function run(verdict: ReturnType<Authenticate>, isObserved: boolean) {
  const asked: unknown[][] = [];
  const filter = createAccessTokenFilter(
    createAccessTokenMatcher(() => ({ match: () => row })),
    (...question) => {
      asked.push(question);
      return verdict;
    },
  );
  const said = filter.run(row, { request, isObserved } as FilterContext);
  expect(asked).toEqual([[request, row]]);
  return said;
}

/** Which refusals of this filter observe mode lets pass: those for the token. The rest are faults of ours, or limits. */
const soft: readonly RejectionName[] = [
  ...(['access-token-missing', 'access-token-invalid', 'insufficient-scope'] as const),
  ...(['access-token-repeated', 'cross-site-request'] as const),
];

describe('what is said of a token', () => {
  test.each(Object.keys(rejectionTable) as RejectionName[])('%s', async (name) => {
    const refused = reject(name, { reason: 'why' });
    const observed = soft.includes(name) ? { observed: refused } : refused;
    expect(run(refused, false)).toBe(refused);
    expect(await run(Promise.resolve(refused), false)).toBe(refused);
    expect(run(refused, true)).toEqual(observed);
    expect(await run(Promise.resolve(refused), true)).toEqual(observed);
  });

  test('who has been verified is handed on, observed or not, at once or later', async () => {
    for (const isObserved of [false, true]) {
      expect(run(somebody, isObserved)).toBe(somebody);
      expect(await run(Promise.resolve(somebody), isObserved)).toBe(somebody);
    }
  });
});

describe('the row that a request meets', () => {
  test('is that of the list as it stands at the moment', () => {
    let list: Pick<ProtectedList, 'match'> = { match: () => undefined };
    const matcher = createAccessTokenMatcher(() => list);
    expect(matcher.match(request)).toBeUndefined();
    list = { match: (asked) => ((asked as unknown) === request ? row : undefined) };
    expect(matcher.match(request)).toBe(row);
  });

  test.each([
    [['a', 'b'], 'needs a valid access token with the scopes a, b; 401 without, 401 with a bad one'],
    [['a'], 'needs a valid access token with the scopes a; 401 without, 401 with a bad one'],
    [[], 'needs a valid access token; 401 without, 401 with a bad one'],
  ])('with the scopes %j is told so', (scopes, text) => {
    const matcher = createAccessTokenMatcher(() => ({ match: () => undefined }));
    const name = (rejection: RejectionName) => String(rejectionTable[rejection].status);
    expect(matcher.describe({ ...row, scopes }, request, name)).toEqual({ text });
  });
});

test('a page that was opened with a token in its query hands it on to nobody, where tokens may stand there', () => {
  const opened = (referer: string) =>
    ({ path: '/a', fields: ['Referer', referer] }) as unknown as CanonicalRequest;
  const handedOn = (tokenParameters: readonly string[] | undefined, referer: string) => {
    const matcher = createAccessTokenMatcher(() => ({
      match: () => undefined,
      ...(tokenParameters && { tokenParameters }),
    }));
    return matcher.withoutReferredToken(opened(referer)).fields.length > 0;
  };
  const [withToken, without] = ['https://shop.example/?access_token=x', 'https://shop.example/?page=x'];
  expect(handedOn(['access_token'], withToken)).toBe(false);
  expect(handedOn(['access_token'], without)).toBe(true);
  expect([handedOn([], withToken), handedOn(undefined, withToken)]).toEqual([true, true]);
});
