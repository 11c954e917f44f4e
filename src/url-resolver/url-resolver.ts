import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { Answer, Rejection } from '../http/rejection.ts';
import type { Lesson } from './learning/lesson.ts';
import type { FileState } from './mapping-file/mapping-file.ts';
import type { FileProblem } from './mapping-file/problem.ts';
import type { Purge } from './purge/purge.ts';
import type { ResolverCounts } from './resolver-stats.ts';

/** The feature as the pipeline, the admin port and the commands see it. */
export interface UrlResolver {
  /** Reads the mapping file and follows the purge log. Resolves with the file's problems: none is a good start. */
  start(): Promise<readonly FileProblem[]>;
  /**
   * Answers GET and HEAD of the resolver's path, at once when it can; undefined for every other request, which is to be
   * forwarded. Never throws nor rejects.
   */
  answer(request: CanonicalRequest): Resolution | Promise<Resolution> | undefined;
  /**
   * To be called before a request is forwarded. Undefined: nothing is to be learnt from its response. Else the lesson is
   * given fields and whole body of a 200, once the client has its answer.
   */
  startLesson(request: CanonicalRequest): Lesson | undefined;
  /** Everywhere, or nowhere: `unavailable` when the purge log cannot be reached. Mapping files are not purged. */
  purge(purge: Purge): Promise<'purged' | 'unavailable'>;
  /** Reads the mapping file anew, now. Problems leave the last good one in place. */
  reload(): Promise<readonly FileProblem[]>;
  stats(): ResolverStats;
  close(): Promise<void>;
}

export type Resolution = Answer | Rejection;

export interface ResolverStats extends Readonly<ResolverCounts> {
  /** Entries in this process, questions under way, and keys that wait for one. */
  readonly entries: number;
  readonly questionsUnderWay: number;
  readonly flights: number;
  /** Whether the shared copies cannot be used at the moment; false without any. */
  readonly sharedAway: boolean;
  /** Number of the last purge that this process knows. */
  readonly purgeSeq: number;
  /** Undefined without a mapping file. */
  readonly file: FileState | undefined;
}

/** Things that happen beside requests, for the log. */
export type ResolverEvent =
  | { readonly kind: 'source-failed'; readonly fault: string; readonly reason: string }
  | { readonly kind: 'source-exception'; readonly cause: unknown }
  | { readonly kind: 'shared-away'; readonly cause: unknown }
  | { readonly kind: 'shared-back' }
  | { readonly kind: 'forgotten' }
  | { readonly kind: 'file-loaded'; readonly rows: number; readonly durationMs: number }
  | { readonly kind: 'file-refused'; readonly problems: readonly FileProblem[] };
