import type { Position } from './purge/purge.ts';
import type { PurgeHistory } from './purge/purge-history.ts';

/** One question under way, shared by everyone who wants the same key. */
export interface Flight<T> {
  /** Where the purge log stood before the source was asked. */
  readonly stamp: Position;
  readonly outcome: Promise<T>;
}

/** One question at a time for each key. A client that leaves does not end it: nobody owns it. */
export class Flights<T> {
  readonly #underWay = new Map<string, Flight<T>>();
  readonly #history: PurgeHistory;

  constructor(history: PurgeHistory) {
    this.#history = history;
  }

  get size(): number {
    return this.#underWay.size;
  }

  /** The flight of `key` that may be joined: not one that began before a purge of its URL. */
  find(key: string, url: string): Flight<T> | undefined {
    const flight = this.#underWay.get(key);
    return flight !== undefined && this.#history.accepts(flight.stamp, url) ? flight : undefined;
  }

  /** Starts `ask`, which never rejects, with the stamp of now. */
  start(key: string, ask: (stamp: Position) => Promise<T>): Flight<T> {
    const stamp = this.#history.position;
    const flight: Flight<T> = { stamp, outcome: ask(stamp) };
    this.#underWay.set(key, flight);
    void flight.outcome.finally(() => {
      if (this.#underWay.get(key) === flight) this.#underWay.delete(key);
    });
    return flight;
  }
}
