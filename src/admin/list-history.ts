import type { ListCheck } from '../access/list-check.ts';
import { counter, type MetricSpec } from '../lib/component.ts';
import type { Log } from '../telemetry/log.ts';

/** An edit of the list, and how many rows it changed. */
interface ListEdit {
  readonly atMs: number;
  readonly counts: Difference['counts'];
}

type Difference = NonNullable<ListCheck['difference']>;

/** Maximum number of edits that are kept. */
const maxEdits = 50;

/** The edits of the list since the start. Each row that protects less than before is logged as a warning. */
export class ListHistory {
  readonly #log: Log;
  readonly #now: () => number;
  #edits: readonly ListEdit[] = [];
  #looser = 0;

  constructor(log: Log, now = Date.now) {
    this.#log = log;
    this.#now = now;
  }

  readonly metrics: readonly MetricSpec[] = [
    counter(
      'shopward_list_looser_rows',
      'Routes that an edit left without a row, or whose row asks for less.',
      () => this.#looser,
    ),
  ];

  /** The newest first. */
  edits(): readonly ListEdit[] {
    return this.#edits;
  }

  /** Records the changes of a list that took effect. */
  take({ difference }: ListCheck): void {
    if (difference === undefined || difference.rows.length === 0) return;
    const { counts } = difference;
    this.#looser += counts.looser;
    this.#edits = [{ atMs: this.#now(), counts }, ...this.#edits].slice(0, maxEdits);
    logDifference(this.#log, difference);
  }
}

function logDifference(log: Log, { rows, counts }: Difference): void {
  for (const { row, change, isLooser } of rows) {
    const words = { event: 'list-row', row, change, looser: isLooser };
    if (isLooser) log.warn(words, `${row} is protected less than before`);
    else log.info(words, `${row}: ${change}`);
  }
  const rest = counts.added + counts.removed + counts.changed - rows.length;
  if (rest === 0) return;
  const looser = counts.looser - rows.filter(({ isLooser }) => isLooser).length;
  log.warn({ event: 'list-rows-not-logged', count: rest, looser }, `${rest} more rows were changed`);
}
