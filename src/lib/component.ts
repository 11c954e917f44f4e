/** What the composition root runs: a client, a store, a followed file, a filter. Started, asked and let go in one loop. */
export interface Component {
  /** Stable: `keys`, `store`, `entity-tags`. */
  readonly name: string;
  /** Before the first request; rejects only for what makes a start senseless. */
  start?(): Promise<void>;
  /** Why `/readyz` should speak of it, in words for people; empty when all is well. */
  reasons?(): readonly string[];
  /** Reads its files anew (SIGHUP). */
  reload?(): Promise<void>;
  close?(): Promise<void> | void;
}
