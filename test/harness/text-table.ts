/**
 * Rows of a table in text: an input of one or more lines, then the expected texts after ` => ` or in indented lines below;
 * `-` alone stands for none.
 */
export function rowsOf(text: string): (readonly [input: string, expected: readonly string[]])[] {
  const rows: { input: string[]; expected: string[] }[] = [];
  for (const line of text.split('\n').filter((one) => one.trim() !== '')) {
    const [input = '', ...expected] = line.startsWith('  ') ? ['', line.trim()] : line.split(' => ');
    if (input !== '' && rows.at(-1)?.expected.length !== 0) rows.push({ input: [], expected: [] });
    const last = rows.at(-1);
    if (last === undefined) throw new Error(`no input before ${line}`);
    if (input !== '') last.input.push(input);
    last.expected.push(...expected);
  }
  return rows.map(({ input, expected }) => [input.join('\n'), expected.filter((one) => one !== '-')]);
}
