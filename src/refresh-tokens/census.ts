import type { TokenEntry, TokenState } from './token-values.ts';

/** Numbers of refresh tokens, by state, and of the logins that they descend from; without any token or name of a user. */
export interface TokenCensus {
  readonly tokens: number;
  readonly states: Readonly<Record<TokenState, number>>;
  /** Known logins, and those of them that have a token which can still be refreshed. */
  readonly families: number;
  readonly livingFamilies: number;
  /** Tokens of the largest family. */
  readonly largestFamily: number;
  readonly subjects: number;
  /** When the oldest and the newest token were issued, in milliseconds since the epoch; null: there are none. */
  readonly oldestIssuedMs: number | null;
  readonly newestIssuedMs: number | null;
  /** Whether all were counted; otherwise there are more. */
  readonly isWhole: boolean;
}

/** Counting stops after so many tokens or milliseconds: a store may hold millions. */
const maxTokens = 20_000;
const maxMs = 3_000;

/** Counts the tokens that a store lists, within bounds of number and time. Rejects as the store does. */
export async function countTokens(
  entries: AsyncIterable<TokenEntry>,
  { max = maxTokens, now = Date.now }: { readonly max?: number; readonly now?: () => number } = {},
): Promise<TokenCensus> {
  const endMs = now() + maxMs;
  const counted: TokenEntry[] = [];
  let isWhole = true;
  for await (const entry of entries) {
    isWhole = counted.length < max && now() <= endMs;
    if (!isWhole) break;
    counted.push(entry);
  }
  const states: Record<TokenState, number> = { valid: 0, 'in-exchange': 0, used: 0, revoked: 0, expired: 0 };
  for (const { state } of counted) states[state] += 1;
  const families = Map.groupBy(counted, ({ family }) => family);
  families.delete(null);
  const isLiving = ({ state }: TokenEntry) => state === 'valid' || state === 'in-exchange';
  const issued = counted.map(({ issuedAtMs }) => issuedAtMs);
  const extreme = (pick: (one: number, other: number) => number) =>
    issued.length === 0 ? null : issued.reduce((one, other) => pick(one, other));
  return {
    tokens: counted.length,
    states,
    families: families.size,
    livingFamilies: [...families.values()].filter((tokens) => tokens.some(isLiving)).length,
    largestFamily: [...families.values()].reduce((most, tokens) => Math.max(most, tokens.length), 0),
    subjects: new Set(counted.flatMap(({ subject }) => subject ?? [])).size,
    oldestIssuedMs: extreme(Math.min),
    newestIssuedMs: extreme(Math.max),
    isWhole,
  };
}
