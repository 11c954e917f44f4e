declare module 'negotiator' {
  /** As far as it is used here; the package ships no types. */
  export default class Negotiator {
    constructor(request: { headers: Record<string, string> });
    /** Those of `available` that are acceptable, the most preferred first. */
    languages(available: readonly string[]): string[];
    /** The same of `Accept`. */
    mediaTypes(available: readonly string[]): string[];
  }
}
