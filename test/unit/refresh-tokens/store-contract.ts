import { randomUUID } from 'node:crypto';
import { newFamily } from '../../../src/refresh-tokens/issue.ts';
import { createDigests } from '../../../src/refresh-tokens/token-digest.ts';
import type { TokenStore } from '../../../src/refresh-tokens/token-store.ts';
import {
  bearer,
  type ClaimAnswer,
  type FamilyId,
  type SubjectDigest,
  type TokenDigest,
  type TokenEntry,
  type Use,
} from '../../../src/refresh-tokens/token-values.ts';

/** A store under test. Only the test moves its clock; but Redis drops records by the clock of the machine. */
export interface Subject {
  /** Two stores with the same records, as two replicas have. */
  readonly one: TokenStore;
  readonly other: TokenStore;
  /** Moves the store's clock forward. */
  pass(ms: number): Promise<void>;
}

export const lifetimeMs = 60_000;
const claimMs = 50_000;
/** No test takes so long that Redis would drop a record after this time. */
const shortMs = 20_000;
const digests = createDigests('store contract');
/** The limit of notes of one subject about unknown tokens. Small, so that a test can reach it. */
export const notesOfSubject = 5;
const family = newFamily();
const use: Use = { owner: null, family, answer: null };
/** A token of an unknown user. */
const unowned = { subject: null, generation: 0, family, lifetimeMs };

/** The promises of every store. A broken promise throws an error with the answer of the store. */
export const contract: Readonly<Record<string, (subject: Subject) => Promise<void>>> = {
  async 'an unknown token is granted once at a time, over both replicas'({ one, other }) {
    const token = newToken();
    same(await kindOf(one, token, 'a'), 'granted');
    const refused = await other.claim(token, 'b', claimMs);
    same(refused.kind, 'in-exchange');
    same(refused.kind === 'in-exchange' && refused.waitMs, 1000);
  },
  async 'of fifty concurrent claims one is granted'({ one, other }) {
    const token = newToken();
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? one : other).claim(token, `op-${i}`, claimMs)),
    );
    same(answers.filter(({ kind }) => kind === 'granted').length, 1);
  },
  async 'a release ends only the claim of its own operation'({ one, other }) {
    const token = newToken();
    await one.claim(token, 'a', claimMs);
    await other.release(token, 'b');
    same(await kindOf(other, token, 'b'), 'in-exchange');
    await one.release(token, 'a');
    same(await kindOf(other, token, 'b'), 'granted');
  },
  async 'a claim ends by itself, and a late release does not end the next'({ one, other, pass }) {
    const token = newToken();
    await one.claim(token, 'a', shortMs);
    await pass(shortMs);
    same(await kindOf(other, token, 'b'), 'granted');
    await one.release(token, 'a');
    same(await kindOf(one, token, 'c'), 'in-exchange');
  },
  async 'used is final, also after a late release and a second issue'({ one, other }) {
    for (const before of ['claim', 'none', 'record']) {
      const token = newToken();
      if (before === 'claim') await one.claim(token, 'a', claimMs);
      if (before === 'record') await one.record(token, unowned);
      await one.markUsed(token, use);
      same(await kindOf(other, token, 'b'), 'used');
      await one.release(token, 'a');
      await one.record(token, unowned);
      same(await kindOf(other, token, 'b'), 'used');
    }
  },
  async 'a used mark counts although its claim has ended'({ one, other, pass }) {
    const token = newToken();
    await one.claim(token, 'a', shortMs);
    await pass(shortMs);
    await other.claim(token, 'b', claimMs);
    await one.markUsed(token, use);
    await other.release(token, 'b');
    same(await kindOf(other, token, 'c'), 'used');
  },
  async 'after an unknown outcome the claim is indeterminate until it ends'({ one, other, pass }) {
    const token = newToken();
    const indeterminate = async () => {
      const answer = await other.claim(token, 'z', claimMs);
      return answer.kind === 'in-exchange' && answer.isIndeterminate;
    };
    await one.record(token, unowned);
    await one.claim(token, 'a', shortMs);
    await one.markIndeterminate(token, 'b', claimMs);
    same(await indeterminate(), false);
    await one.markIndeterminate(token, 'a', claimMs);
    same(await indeterminate(), true);
    await pass(shortMs);
    same(await kindOf(one, token, 'c'), 'granted');
    same(await indeterminate(), false);
  },
  async 'an unknown outcome can shorten the claim'({ one, other, pass }) {
    const token = newToken();
    await one.claim(token, 'a', 10 * shortMs);
    await one.markIndeterminate(token, 'a', shortMs);
    const answer = await other.claim(token, 'b', claimMs);
    same(answer.kind === 'in-exchange' && answer.waitMs > 0 && answer.waitMs <= shortMs, true);
    await pass(shortMs);
    same(await kindOf(other, token, 'b'), 'granted');
  },
  async 'waitMs grows with the age of the claim, from a second to the limit'({ one, other, pass }) {
    const token = newToken();
    const waitOf = async (mostWaitMs: number) => {
      const answer = await other.claim(token, 'b', claimMs, mostWaitMs);
      return answer.kind === 'in-exchange' && Math.floor(answer.waitMs / 1000);
    };
    await one.claim(token, 'a', claimMs);
    same([await waitOf(30_000), await waitOf(100)], [1, 1]);
    await pass(shortMs);
    same([await waitOf(30_000), await waitOf(2000), await waitOf(100)], [20, 2, 1]);
  },
  async 'a client that was told to wait is expected for that time'({ one, other, pass }) {
    const [token, alone, again] = [newToken(), newToken(), newToken()];
    const answer = { sealed: 'sealed', leewayMs: 1 };
    const isAwaited = async (each: TokenDigest) => {
      const claimed = await other.claim(each, 'z', claimMs);
      return claimed.kind === 'used' && [claimed.isAwaited, claimed.sealed];
    };
    for (const each of [token, alone, again]) {
      await one.record(each, unowned);
      await one.claim(each, 'a', claimMs);
      if (each !== alone) await other.claim(each, 'b', claimMs);
    }
    await one.release(again, 'a');
    await one.claim(again, 'c', claimMs);
    for (const each of [token, alone, again]) await one.markUsed(each, { ...use, answer });
    await pass(1);
    same(await isAwaited(token), [true, 'sealed']);
    same(
      [await isAwaited(alone), await isAwaited(again)],
      [
        [false, null],
        [true, 'sealed'],
      ],
    );
    await pass(shortMs);
    same(await isAwaited(token), [false, null]);
  },
  async 'a token keeps its first family: that of its record, or of its used mark'({ one, other }) {
    const [issued, unknown, first] = [newToken(), newToken(), newFamily()];
    await one.record(issued, { subject: null, generation: 0, family: first, lifetimeMs });
    await one.record(issued, unowned);
    same(await one.markUsed(issued, use), first);
    same(await one.markUsed(unknown, { ...use, family: first }), first);
    same(await one.markUsed(unknown, use), first);
    for (const token of [issued, unknown]) {
      const answer = await other.claim(token, 'a', claimMs);
      same(answer.kind === 'used' && answer.family, first);
    }
    const answer = await other.claim(issued, 'a', claimMs);
    same(
      answer.kind === 'used' && answer.lifetimeMs >= lifetimeMs && answer.lifetimeMs < 2 * lifetimeMs,
      true,
    );
  },
  async 'the end of a family ends no other one, and lists its tokens as revoked'({ one, other }) {
    const [ended, going, token, subject] = [newFamily(), newFamily(), newToken(), newSubject()];
    const { generation } = await one.generationFor(subject, lifetimeMs);
    await one.record(token, { subject, generation, family: ended, lifetimeMs });
    same(await other.isFamilyEnded(ended), false);
    await one.endFamily(ended, lifetimeMs);
    await one.endFamily(ended, lifetimeMs);
    same([await other.isFamilyEnded(ended), await other.isFamilyEnded(going)], [true, false]);
    same(toStates(await all(other.list(subject))), { [token]: 'revoked' });
  },
  async 'a claim of a used token returns the sealed answer within the leeway'({ one, other, pass }) {
    const [token, another] = [newToken(), newToken()];
    await one.markUsed(token, { ...use, answer: { sealed: 'sealed', leewayMs: shortMs } });
    await one.markUsed(another, use);
    const sealedOf = async (each: typeof token) => {
      const answer = await other.claim(each, 'a', claimMs);
      return answer.kind === 'used' && answer.sealed;
    };
    same([await sealedOf(token), await sealedOf(another)], ['sealed', null]);
    await pass(shortMs);
    same(await sealedOf(token), null);
    const answer = await other.claim(token, 'a', claimMs);
    same(answer.kind === 'used' && answer.usedForMs >= shortMs && answer.usedForMs < 2 * shortMs, true);
  },
  async 'the limit of notes about unknown tokens is for each subject'({ one }) {
    const [greedy, modest] = [newSubject(), newSubject()];
    const noted = await Promise.all(
      Array.from({ length: notesOfSubject }, () => one.noteRevocation(newToken(), greedy, 'r')),
    );
    same([...new Set(noted)], ['noted']);
    const token = newToken();
    same(await one.noteRevocation(token, greedy, 'r'), 'full');
    same(await kindOf(one, token, 'a'), 'granted');
    same(await one.noteRevocation(token, modest, 'm'), 'noted');
    // A second note about the same token does not count.
    await one.concludeRevocation(token, modest, 'm', true);
    for (let i = 0; i < 2 * notesOfSubject; i += 1)
      same(await one.noteRevocation(token, modest, `n${i}`), 'noted');
    // A note about a recorded token does not count either.
    const known = newToken();
    await one.record(known, { subject: greedy, generation: 0, family, lifetimeMs });
    same(await one.noteRevocation(known, greedy, 'r'), 'noted');
  },
  async 'a recorded token is granted with what was recorded, and expires'({ one, other, pass }) {
    const [token, subject] = [newToken(), newSubject()];
    await one.record(token, { subject, generation: 7, family, lifetimeMs: shortMs });
    same(await other.claim(token, 'a', 1), {
      kind: 'granted',
      subject,
      generation: 7,
      family,
      lifetimeMs: shortMs,
      revokedBy: [],
    });
    await other.release(token, 'a');
    await pass(shortMs);
    same(await kindOf(other, token, 'b'), 'expired');
  },
  async 'a token that is issued again lives longer and keeps its subject'({ one, other, pass }) {
    const [token, subject] = [newToken(), newSubject()];
    await one.record(token, { subject, generation: 1, family, lifetimeMs: shortMs });
    await one.record(token, { subject: newSubject(), generation: 2, family, lifetimeMs });
    await pass(shortMs);
    const answer = await other.claim(token, 'a', claimMs);
    same(answer.kind === 'granted' && [answer.subject, answer.generation], [subject, 1]);
  },
  async 'a token that is issued again during its refresh stays claimed'({ one, other }) {
    const [token, subject] = [newToken(), newSubject()];
    await one.record(token, { subject, generation: 1, family, lifetimeMs });
    for (const op of ['a', 'b', 'c']) {
      same(await kindOf(one, token, op), 'granted');
      await one.record(token, { subject, generation: 1, family, lifetimeMs });
      same(await kindOf(other, token, 'x'), 'in-exchange');
      await one.release(token, op);
    }
    await other.claim(token, 'd', claimMs);
    await other.markUsed(token, { owner: subject, family, answer: null });
    await one.record(token, { subject, generation: 1, family, lifetimeMs });
    same(await kindOf(one, token, 'e'), 'used');
  },
  async 'a revocation by its user counts at once, and after it is confirmed'({ one, other }) {
    const { token, subject } = await issue(one);
    same(await one.noteRevocation(token, subject, 'r'), 'noted');
    same(await kindOf(other, token, 'a'), 'revoked');
    await one.concludeRevocation(token, subject, 'r', true);
    same(await kindOf(other, token, 'a'), 'revoked');
    await one.record(token, { subject, generation: 9, family, lifetimeMs });
    same(await kindOf(other, token, 'a'), 'revoked');
  },
  async 'a revocation that is withdrawn leaves the token valid'({ one, other }) {
    const { token, subject } = await issue(one);
    await one.noteRevocation(token, subject, 'r');
    await one.concludeRevocation(token, subject, 'r', false);
    same(await kindOf(other, token, 'a'), 'granted');
  },
  async 'of two revocations of one token the refused one does not undo the other'({ one, other }) {
    for (const order of [
      ['r', 's'],
      ['s', 'r'],
    ]) {
      const { token, subject } = await issue(one);
      await one.noteRevocation(token, subject, 'r');
      await other.noteRevocation(token, subject, 's');
      for (const op of order) await one.concludeRevocation(token, subject, op, op === 'r');
      same(await kindOf(other, token, 'a'), 'revoked');
    }
  },
  async 'a revocation that is confirmed without its note (after a flush) counts'({ one, other }) {
    const { token, subject } = await issue(one);
    await one.concludeRevocation(token, subject, 'r', true);
    same(await kindOf(other, token, 'a'), 'revoked');
  },
  async 'a revocation of a known token by another user is refused'({ one, other }) {
    const { token } = await issue(one);
    same(await one.noteRevocation(token, newSubject(), 'r'), 'foreign');
    same(await kindOf(other, token, 'a'), 'granted');
  },
  async 'a note on an unknown token counts once the token is recorded for its user'({ one, other }) {
    const [token, subject, otherSubject] = [newToken(), newSubject(), newSubject()];
    same(await one.noteRevocation(token, otherSubject, 'r'), 'noted');
    await one.concludeRevocation(token, otherSubject, 'r', true);
    same(await other.noteRevocation(token, subject, 's'), 'noted');
    const answer = await other.claim(token, 'a', claimMs);
    same(answer.kind === 'granted' && [...answer.revokedBy].sort(), [subject, otherSubject].sort());
    await other.release(token, 'a');
    await one.record(token, { ...unowned, subject });
    same(await kindOf(other, token, 'b'), 'revoked');
  },
  async 'a revocation by another user, noted before the token was recorded, does not count'({ one, other }) {
    const [token, subject, otherSubject] = [newToken(), newSubject(), newSubject()];
    await one.noteRevocation(token, otherSubject, 'r');
    await one.concludeRevocation(token, otherSubject, 'r', true);
    await one.record(token, { ...unowned, subject });
    same(await kindOf(other, token, 'b'), 'granted');
  },
  async 'a client that shows a token revokes it, known or not'({ one, other }) {
    for (const subject of [newSubject(), null, undefined]) {
      const token = newToken();
      if (subject !== undefined) await one.record(token, { ...unowned, subject });
      same(await one.noteRevocation(token, bearer, 'r'), 'noted');
      same(await kindOf(other, token, 'a'), 'revoked');
      await other.concludeRevocation(token, bearer, 'r', false);
      same(await kindOf(one, token, 'b'), 'granted');
      await one.release(token, 'b');
      await one.concludeRevocation(token, bearer, 's', true);
      same(await kindOf(other, token, 'c'), 'revoked');
      await one.record(token, { subject: newSubject(), generation: 0, family, lifetimeMs });
      same(await kindOf(other, token, 'd'), 'revoked');
      const listed = (await all(other.list())).find((each) => each.token === token);
      same([listed?.state, typeof listed?.revokedAtMs], ['revoked', 'number']);
    }
  },
  async 'a revocation by a client with the token counts during a claim'({ one, other }) {
    const [token, used] = [newToken(), newToken()];
    await one.claim(token, 'a', claimMs);
    same(await other.noteRevocation(token, bearer, 'r'), 'noted');
    same(await kindOf(one, token, 'b'), 'revoked');
    await one.markUsed(used, use);
    same(await other.noteRevocation(used, bearer, 'r'), 'noted');
    same(await kindOf(one, used, 'a'), 'used');
  },
  async 'mine raises the generation at once, and lowers it if it is refused'({ one, other }) {
    const subject = newSubject();
    const seen = [await one.generationOf(subject)];
    const first = await one.noteRevocationOfAll(subject, 'r');
    seen.push((await other.generationFor(subject, lifetimeMs)).generation);
    const second = await one.noteRevocationOfAll(subject, 's');
    seen.push(await other.generationOf(subject));
    same(
      seen,
      [...new Set(seen)].sort((a, b) => a - b),
    );
    same(seen, [0, first, second]);
    await one.concludeRevocationOfAll(subject, 's', second, false);
    same(await other.generationOf(subject), first);
    await one.concludeRevocationOfAll(subject, 'r', first, true);
    same(await other.generationOf(subject), first);
    const third = await one.noteRevocationOfAll(subject, 't');
    await one.concludeRevocationOfAll(subject, 't', third, false);
    same(await other.generationOf(subject), first);
  },
  async 'mine that is confirmed without its note sets the generation'({ one, other }) {
    const [subject, otherSubject] = [newSubject(), newSubject()];
    await one.concludeRevocationOfAll(subject, 'r', 1.7e15, true);
    same(await other.generationOf(subject), 1.7e15);
    same(await other.generationOf(otherSubject), 0);
  },
  async 'mine that is confirmed twice does not raise the generation again'({ one, other, pass }) {
    const subject = newSubject();
    const noted = await one.noteRevocationOfAll(subject, 'r');
    await one.concludeRevocationOfAll(subject, 'r', noted, true);
    await pass(1000);
    const { generation } = await other.generationFor(subject, lifetimeMs);
    await one.concludeRevocationOfAll(subject, 'r', noted, true);
    same([generation, await other.generationOf(subject)], [noted, noted]);
  },
  async 'a list shows the states of the tokens of one subject'({ one, other, pass }) {
    const [subject, otherSubject] = [newSubject(), newSubject()];
    const make = async (owner: SubjectDigest, lifetime = lifetimeMs) =>
      (await issue(one, owner, lifetime)).token;
    const expected: Record<string, string> = {};
    const mark = (token: string, state: string) => {
      expected[token] = state;
    };
    mark(await make(subject), 'valid');
    const used = await make(subject);
    await one.markUsed(used, use);
    mark(used, 'used');
    const revoked = await make(subject);
    await one.noteRevocation(revoked, subject, 'r');
    mark(revoked, 'revoked');
    const claimed = await make(subject);
    await one.claim(claimed, 'a', claimMs);
    mark(claimed, 'in-exchange');
    mark(await make(subject, shortMs), 'expired');
    await make(otherSubject);
    await one.claim(newToken(), 'b', claimMs);
    await pass(shortMs);
    const states = async () => toStates(await all(other.list(subject)));
    same(await states(), expected);
    await other.concludeRevocationOfAll(subject, 'm', await one.noteRevocationOfAll(subject, 'm'), true);
    same([...new Set(Object.values(await states()))].sort(), ['revoked', 'used']);
    same(
      toStates(await all(other.list(otherSubject))),
      toStates((await all(one.list())).filter((each) => each.subject === otherSubject)),
    );
  },
  async 'purgeExpired deletes expired tokens, of one subject or of all'({ one, other, pass }) {
    const [subject, otherSubject] = [newSubject(), newSubject()];
    const make = async (owner: SubjectDigest, lifetime = lifetimeMs) =>
      (await issue(one, owner, lifetime)).token;
    await make(subject, shortMs);
    const alive = await make(subject, lifetimeMs);
    const others = await make(otherSubject, shortMs);
    await pass(shortMs);
    same(await other.purgeExpired(subject), 1);
    same(Object.keys(toStates(await all(one.list(subject)))), [alive]);
    same((await one.claim(others, 'a', 1)).kind, 'expired');
    same((await other.purgeExpired()) >= 1, true);
    same((await one.claim(others, 'a', 1)).kind, 'granted');
    same(await other.purgeExpired(otherSubject), 0);
  },
};

/** The kind of the answer to a claim of the token. */
const kindOf = async (store: TokenStore, token: TokenDigest, op: string) =>
  (await store.claim(token, op, claimMs)).kind;

/** Records a new token. */
async function issue(store: TokenStore, subject = newSubject(), lifetime = lifetimeMs) {
  const token = newToken();
  const { generation } = await store.generationFor(subject, lifetime);
  await store.record(token, { subject, generation, family, lifetimeMs: lifetime });
  return { token, subject };
}

export const newToken = () => digests.ofToken(randomUUID());
export const newSubject = () => digests.ofSubject(randomUUID());

/** All entries of a list. */
export async function all(entries: AsyncIterable<TokenEntry>): Promise<TokenEntry[]> {
  const list: TokenEntry[] = [];
  for await (const entry of entries) list.push(entry);
  return list;
}

function toStates(entries: readonly TokenEntry[]): Readonly<Record<string, string>> {
  return Object.fromEntries(entries.map(({ token, state }) => [token, state]));
}

/** Compares as JSON with sorted keys, without a test runner. */
function same(seen: unknown, expected: unknown): void {
  const [a, b] = [seen, expected].map((value) => JSON.stringify(value, sortKeys));
  if (a !== b) throw new Error(`expected ${b}, saw ${a}`);
}

function sortKeys(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

export type { ClaimAnswer, FamilyId };
