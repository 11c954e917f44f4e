/** Of `components`, all that says who may call an operation. */
const kept = /^ *(?:securitySchemes|pathItems) *:/;

/**
 * Leaves out of a block-style OpenAPI document what no operation's security depends on: schemas, parameters, examples
 * and the like under `components`. They are nine tenths of a generated document, and a YAML parser needs 0.3 s and
 * 35 MB of memory for each megabyte.
 *
 * A line that is indented as the children of `components` begins a child and no child can hold such a line, so whole
 * children go. Whoever finds that the rest does not parse (an anchor stood in what is gone) parses the whole.
 */
export function withoutSchemas(yaml: string): string {
  const start = /^components: *\r?\n/m.exec(yaml);
  if (start === null) return yaml;
  const from = start.index + start[0].length;
  const length = yaml.slice(from).search(/^[^\s#]/m);
  const to = length === -1 ? yaml.length : from + length;
  const block = yaml.slice(from, to);
  const indent = /^( +)[^\s#]/m.exec(block)?.[1];
  if (indent === undefined) return yaml;
  const children = block.split(new RegExp(`^(?=${indent}[^\\s#])`, 'm'));
  return yaml.slice(0, from) + children.filter((child) => kept.test(child)).join('') + yaml.slice(to);
}
