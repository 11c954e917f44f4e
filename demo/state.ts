import { seeds } from './data/seeds.ts';

export type ShopState = typeof seeds;

/** Two shops never share a record: every call copies the seeds. */
export function createState(): ShopState {
  return structuredClone(seeds);
}

/** Back to the seeds, in place: handlers hold on to the object. */
export function resetState(state: ShopState): void {
  Object.assign(state, createState());
}

export function nextNumber(state: ShopState): number {
  state.sequence += 1;
  return state.sequence;
}

/** Date and time in the form in which the shop writes them. */
export function shopTime(now: Date = new Date()): string {
  return `${now.toISOString().slice(0, 23).replace('T', ' ')}000`;
}
