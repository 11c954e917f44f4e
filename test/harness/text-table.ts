/**
 * Rows of a table in text: an input of one or more lines, and what is expected for it, after ` => ` or in indented lines
 * below; `-` alone if nothing is.
 */
export function rowsOf(text: string): (readonly [input: string, expected: readonly string[]])[] {
  const rows: { input: string[]; expected: string[] }[] = [];
  for (const line of text.split('\n').filter((one) => one.trim() !== '')) {
    let last = rows.at(-1);
    const [input = '', ...expected] = line.startsWith('  ') ? ['', line.trim()] : line.split(' => ');
    if (input !== '' && (last === undefined || last.expected.length > 0))
      rows.push((last = { input: [], expected: [] }));
    if (last === undefined) throw new Error(`no input before ${line}`);
    if (input !== '') last.input.push(input);
    last.expected.push(...expected);
  }
  return rows.map(({ input, expected }) => [input.join('\n'), expected.filter((one) => one !== '-')]);
}
