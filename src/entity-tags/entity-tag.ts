import { meantTag, parseEntityTags, type TagReading } from '../http/entity-tag-list.ts';

const stateLength = 32;
/** `<state>.<variant>`, or the state alone, as earlier versions gave it out. */
const ownTag = /^[0-9a-f]{32}(?:\.[0-9a-f]{1,24})?$/;

/** The state that one of shopward's own tags names; undefined for any other tag. */
export function stateOf(tag: string): string | undefined {
  return ownTag.test(tag) ? tag.slice(0, stateLength) : undefined;
}

/** The tag of an answer to a write. No read has this variant, so the tag is good for `If-Match` alone. */
export function tagOfWrite(state: string): string {
  return `${state}.0`;
}

/** Whether a request creates: RFC 9110 section 13.1.2. */
export function isCreation(ifMatch: readonly string[], ifNoneMatch: readonly string[]): boolean {
  return ifMatch.length === 0 && parseEntityTags(ifNoneMatch, 'strict') === '*';
}

/**
 * What `If-Match` requires (RFC 9110 section 13.1.1), together with the `If-None-Match` of a write: the states of which
 * one must be current. `never`: no current state can match, because the field is malformed, or has only weak tags, tags
 * that are not shopward's, or states that `If-None-Match` names, too; or it is `*`, since a change has to name the state
 * that it was made for.
 */
export function readIfMatch(
  ifMatch: readonly string[],
  ifNoneMatch: readonly string[],
  reading: TagReading,
): 'missing' | 'never' | readonly string[] {
  if (ifMatch.length === 0) return 'missing';
  const wanted = parseEntityTags(ifMatch, reading);
  if (!Array.isArray(wanted)) return 'never';
  const strong = wanted.filter(({ weak }) => !weak || reading === 'lenient');
  const states = new Set(strong.map((tag) => stateOf(meantTag(tag, reading))));
  states.delete(undefined);
  // A long list of other tags is not worth the second list.
  if (states.size === 0) return 'never';
  const excluded = ifNoneMatch.length === 0 ? [] : parseEntityTags(ifNoneMatch, reading);
  if (!Array.isArray(excluded)) return 'never';
  for (const tag of excluded) states.delete(stateOf(meantTag(tag, reading)));
  return states.size === 0 ? 'never' : ([...states] as string[]);
}
