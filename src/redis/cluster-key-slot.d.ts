declare module 'cluster-key-slot' {
  /** Number of the slot (0-16383) that a key is kept in; the package ships no types. */
  export default function calculateSlot(key: string): number;
}
