import type { LookUp, ResourceKey, TagStore } from '../../../../src/entity-tags/tag-store.ts';
import type { Call } from './world.ts';

/** A real store whose clock, identity and data the replay controls. */
export interface Replayed {
  readonly store: TagStore;
  readonly key: ResourceKey;
  /** The key of the collection of a guarded member. */
  readonly collection?: ResourceKey;
  setTime(units: number): Promise<void> | void;
  wipe?(): Promise<void>;
  save?(): Promise<void>;
  restore?(): Promise<void>;
  setIdentity?(id: number): Promise<void>;
  /** The store's name for an epoch of the model. */
  epochOf(epoch: string): string;
}

/** Replays the calls of one walk on a store. Returns the first answer that differs from the model's, or null. */
export async function replay(calls: readonly Call[], under: Replayed): Promise<string | null> {
  const { store } = under;
  for (const [i, call] of calls.entries()) {
    const key = call.isOfWhole === true && under.collection !== undefined ? under.collection : under.key;
    let answer: unknown;
    let expected: unknown = 'answer' in call ? call.answer : undefined;
    switch (call.kind) {
      case 'time':
        await under.setTime(call.now);
        continue;
      case 'wipe':
      case 'save':
      case 'restore':
        await under[call.kind]?.();
        continue;
      case 'id':
        await under.setIdentity?.(call.id);
        continue;
      case 'lookUp': {
        const looked = await store.lookUp(key);
        answer = comparable(looked);
        expected = comparable(call.answer);
        break;
      }
      case 'endRead': {
        const stamp = { ...call.read.stamp, epoch: under.epochOf(call.read.stamp.epoch) };
        answer = await store.endRead(key, { ...call.read, stamp });
        break;
      }
      case 'claim':
        answer = await store.claim(key, call.claim);
        break;
      case 'end':
        answer = await store.end(key, call.end);
        break;
    }
    if (JSON.stringify(answer) !== JSON.stringify(expected)) {
      return `call ${i}, ${JSON.stringify(call)}: the store said ${JSON.stringify(answer)}`;
    }
  }
  return null;
}

/** Stamps differ between stores, so only their presence is compared. */
function comparable({ stamp, ...rest }: LookUp): object {
  return { ...rest, stamp: stamp !== null };
}
