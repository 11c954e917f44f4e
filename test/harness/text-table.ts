/**
 * Rows of a table in text: an input of one or more lines, and below it, indented, each line that is expected for it;
 * `-` alone if none is.
 */
export function rowsOf(text: string): (readonly [input: string, expected: readonly string[]])[] {
  const rows: [string[], string[]][] = [];
  for (const line of text.split('\n').filter((one) => one.trim() !== '')) {
    const last = rows.at(-1);
    if (!line.startsWith('  ')) {
      if (last === undefined || last[1].length > 0) rows.push([[line], []]);
      else last[0].push(line);
    } else if (last === undefined) throw new Error(`no input before ${line}`);
    else last[1].push(line.trim());
  }
  return rows.map(([input, expected]) => [input.join('\n'), expected.filter((one) => one !== '-')]);
}
