/** The copies that replicas share, in slots. Both calls reject when the store is away. */
export interface SharedMapping {
  /** Values of `slots`, in their order; null where there is none. */
  read(slots: readonly string[]): Promise<readonly (string | null)[]>;
  /** Replaces what is in `slot`; it is gone after `ttlMs` milliseconds. */
  write(slot: string, value: string, ttlMs: number): Promise<void>;
}
