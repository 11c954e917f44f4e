/** What is said where a file of people's still has the marks of a merge. */
export const conflictProblem =
  'a mark of a merge conflict: keep one of the two versions, and take the lines with <<<<<<<, ======= and >>>>>>> out';

const mark = /^(?:<{7} |={7}\r?$|>{7} )/m;

/** Offset of the first line that git wrote into a file whose two versions it could not join; undefined: there is none. */
export function findConflictMark(text: string): number | undefined {
  if (!text.includes('<<<<<<< ')) return undefined;
  return mark.exec(text)?.index;
}
