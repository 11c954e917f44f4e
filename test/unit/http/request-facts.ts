import type { FieldList } from '../../../src/http/field-list.ts';
import type { RejectionName } from '../../../src/http/rejection.ts';
import { isRejection } from '../../../src/http/rejection.ts';
import { canonicaliseSample, type SampleOptions, sampleHead } from './sample-request.ts';

export function fieldNames(fields: FieldList): string[] {
  return fields.filter((_, i) => i % 2 === 0);
}

/** Name of the rejection for this head; undefined if it is accepted. */
export function refusalOf(
  head: Parameters<typeof sampleHead>[0],
  options?: SampleOptions,
): RejectionName | undefined {
  const result = canonicaliseSample(sampleHead(head), options);
  return isRejection(result) ? result.rejection : undefined;
}
