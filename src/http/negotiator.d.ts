declare module 'negotiator' {
  /** The package ships no types: these cover what is used here. */
  export default class Negotiator {
    constructor(request: { headers: Record<string, string> });
    /** Those of `available` that are acceptable, the most preferred first. */
    languages(available: readonly string[]): string[];
    mediaTypes(available: readonly string[]): string[];
  }
}
