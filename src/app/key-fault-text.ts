import type { KeySourceStatus } from '../access/key-source.ts';

/** Each word says what to look at first. */
const texts: Readonly<Record<string, string>> = {
  unreachable: 'unreachable: no connection to the source, or it broke',
  timeout: 'timeout: the source does not answer',
  status: 'status: the source answers with another status than 200',
  redirect: 'redirect: the source sends elsewhere, which is never followed',
  'too-large': 'too-large: the answer is larger than any key set',
  malformed: 'malformed: the answer is no key set',
  empty: 'empty: no key of the set can verify a configured algorithm',
  ambiguous: 'ambiguous: two different keys of one kid',
  unusable: 'unusable: the log (keys-refused) names the file',
};

/** Why the last load of the keys failed, in words for people; undefined when it did not. */
export function keyFaultText({ lastError }: Pick<KeySourceStatus, 'lastError'>): string | undefined {
  return lastError === undefined ? undefined : (texts[lastError] ?? lastError);
}
