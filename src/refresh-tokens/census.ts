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
  const states: Record<TokenState, number> = { valid: 0, 'in-exchange': 0, used: 0, revoked: 0, expired: 0 };
  const families = new Map<string, { tokens: number; isLiving: boolean }>();
  const subjects = new Set<string>();
  const issued = { oldest: Number.POSITIVE_INFINITY, newest: Number.NEGATIVE_INFINITY };
  let tokens = 0;
  let isWhole = true;
  for await (const { state, family, subject, issuedAtMs } of entries) {
    if (tokens >= max || now() > endMs) {
      isWhole = false;
      break;
    }
    tokens++;
    states[state]++;
    if (subject !== null) subjects.add(subject);
    issued.oldest = Math.min(issued.oldest, issuedAtMs);
    issued.newest = Math.max(issued.newest, issuedAtMs);
    if (family === null) continue;
    const known = families.get(family) ?? { tokens: 0, isLiving: false };
    known.tokens++;
    known.isLiving ||= state === 'valid' || state === 'in-exchange';
    families.set(family, known);
  }
  const all = [...families.values()];
  return {
    tokens,
    states,
    families: all.length,
    livingFamilies: all.filter(({ isLiving }) => isLiving).length,
    largestFamily: all.reduce((largest, one) => Math.max(largest, one.tokens), 0),
    subjects: subjects.size,
    oldestIssuedMs: tokens === 0 ? null : issued.oldest,
    newestIssuedMs: tokens === 0 ? null : issued.newest,
    isWhole,
  };
}
