/** Counts since the start; the names are stable, for metrics and console. */
export interface ResolverCounts {
  /** Answers from this process: fresh mappings, fresh "not found", and stale ones. */
  hits: number;
  notFoundHits: number;
  staleHits: number;
  /** Answers from the copies that replicas share. */
  sharedHits: number;
  /** Answers from the mapping file, found or not. */
  fileAnswers: number;
  /** Requests that waited for the source, joined ones counted too. */
  misses: number;
  /** Of these, requests that joined a question under way. */
  collapsed: number;
  /** Requests of a store that is not configured. */
  bypasses: number;
  /** Questions to the source, failed ones, and believed ones whose answer is not kept. */
  questions: number;
  failures: number;
  notKept: number;
  /** Requests without a usable `url`. */
  missing: number;
  unusable: number;
  /** Entries learnt from passing responses, and responses that were left out for want of room. */
  learnt: number;
  lessonsDropped: number;
  /** Times that every entry was forgotten because the purge log shows another past. */
  forgotten: number;
}

export function startCounts(): ResolverCounts {
  return {
    hits: 0,
    notFoundHits: 0,
    staleHits: 0,
    sharedHits: 0,
    fileAnswers: 0,
    misses: 0,
    collapsed: 0,
    bypasses: 0,
    questions: 0,
    failures: 0,
    notKept: 0,
    missing: 0,
    unusable: 0,
    learnt: 0,
    lessonsDropped: 0,
    forgotten: 0,
  };
}
