/**
 * Trimming in linear time. `/[ \t]+$/` looks for an end behind every space of a run, so that 60 KB of spaces in front of
 * one letter would stop the process for seconds; `String#trim` takes U+00A0 and others for spaces, which no peer does.
 */

/** Without OWS, spaces and tabs, at either end (RFC 9110 section 5.6.3). */
export function trimOws(text: string): string {
  return trimWhile(text, isOws);
}

/** RFC 9110 section 5.6.3. */
export function isOws(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** Without the characters at either end whose codes belong to what is dropped. */
export function trimWhile(text: string, isDropped: (code: number) => boolean): string {
  let start = 0;
  while (start < text.length && isDropped(text.charCodeAt(start))) start += 1;
  const end = endWithout(text, start, isDropped);
  return start === 0 && end === text.length ? text : text.slice(start, end);
}

/** The same of the end alone. */
export function trimEndWhile(text: string, isDropped: (code: number) => boolean): string {
  const end = endWithout(text, 0, isDropped);
  return end === text.length ? text : text.slice(0, end);
}

function endWithout(text: string, start: number, isDropped: (code: number) => boolean): number {
  let end = text.length;
  while (end > start && isDropped(text.charCodeAt(end - 1))) end -= 1;
  return end;
}
