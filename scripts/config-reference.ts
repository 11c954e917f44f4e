import { hotSections } from '../src/config/schema.ts';
import { configJsonSchema, type JsonSchema } from '../src/config/json-schema.ts';

const intro = `# Configuration

Generated from \`src/config/sections/\` by \`npm run docs\`; do not edit this page.

\`shopward\` reads \`config/shopward.yaml\`, else \`/etc/shopward/shopward.yaml\`, or the file of \`--config FILE\`.
\`shopward check\` prints every mistake. The protected list is [a file of its own](protected-list.md).

- Unknown keys are errors. A key that is left out has its default.
- A **duration** is a number with a unit: \`250ms\`, \`30s\`, \`5m\`, \`8h\`, \`30d\`.
- A **size** is a number of bytes, or a number with a unit: \`65536\`, \`64KiB\`, \`2MiB\`.
- \`\${VAR}\` and \`\${VAR:-default}\` are replaced by environment variables, \`\${file:/run/secrets/name}\` by the text of a
  file. A value that is one reference gets the type of the key (\`port: \${PORT}\`); commas separate lists. Inside \`{ }\` a reference needs quotes: \`{ port: "\${PORT}" }\`. \`$\${\` stands for \`\${\`.
- A range such as \`1 to 16\` is of whole numbers. Names of files are relative to the configuration file.
- Error messages contain no values, which may be secrets.
- The file is watched. A change of ${hotSections.map((key) => `\`${key}\``).join(', ')} takes effect without a restart. The log names other changed keys (\`restart-needed\`).
`;

const rejections =
  '[reasons.md](reasons.md) has the names, with status and code; `config/shopward.schema.json` has each `detail`. A `status` is 400 to 599.';

/** docs/configuration.md: every key with its type, default and meaning, from the schema alone. */
export function configReference(): string {
  const { properties = {}, required = [] } = configJsonSchema();
  const sections = Object.entries(properties).map(([key, schema]) =>
    section(key, schema, required.includes(key)),
  );
  return `${[intro.trimEnd(), ...sections].join('\n\n')}\n`;
}

function section(key: string, schema: JsonSchema, isRequired: boolean): string {
  const heading = [`## \`${key}\``, schema.description ?? ''];
  if (key === 'rejections') return [...heading, rejections].join('\n\n');
  const rows = rowsOf(key, schema);
  const body =
    rows.length === 0
      ? `Type: ${typeOf(schema)}. Default: ${defaultOf(schema, isRequired)}.`
      : table(['Key', 'Type', 'Default', 'Meaning'], rows);
  return [...heading, body].join('\n\n');
}

function table(heads: readonly string[], rows: readonly string[]): string {
  return [row(heads), row(heads.map(() => '---')), ...rows].join('\n');
}

function row(cells: readonly string[]): string {
  return `|${cells.map((cell) => cell.replaceAll('|', '\\|')).join('|')}|`;
}

function rowsOf(name: string, schema: JsonSchema): string[] {
  const map = [schema, ...(schema.anyOf ?? [])].find(({ properties }) => properties !== undefined);
  if (map?.properties !== undefined) {
    const { properties, required = [] } = map;
    return Object.entries(properties).flatMap(([key, child]) => [
      keyRow(`${name}.${key}`, child, required.includes(key)),
      // The keys of a setting that refers to another setting are documented at the other setting.
      ...(isAsAnother(child) ? [] : rowsOf(`${name}.${key}`, child)),
    ]);
  }
  return schema.items?.properties === undefined ? [] : rowsOf(`${name}[]`, schema.items);
}

const isAsAnother = ({ description = '' }: JsonSchema) => /^As `[\w.]+`/.test(description);

function keyRow(name: string, schema: JsonSchema, isRequired: boolean): string {
  const type = isAsAnother(schema) ? 'as there' : typeOf(schema);
  return row([`\`${name}\``, type, defaultOf(schema, isRequired), schema.description ?? '']);
}

function typeOf(schema: JsonSchema): string {
  if (schema.unit !== undefined) return schema.unit;
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeOf).join(' or ');
  if (schema.const !== undefined) return `\`${schema.const}\``;
  if (schema.enum !== undefined) return schema.enum.map((one) => `\`${one}\``).join(', ');
  if (schema.type === 'integer') return wholeNumber(schema);
  if (schema.type === 'array') return schema.items === undefined ? 'list' : `list of ${itemOf(schema.items)}`;
  return { boolean: 'boolean', number: 'number', object: 'map', string: 'text' }[schema.type ?? ''] ?? 'text';
}

/** Adds brackets if an item may have several types; otherwise these would look like alternatives to the list. */
function itemOf(schema: JsonSchema): string {
  return schema.anyOf === undefined ? typeOf(schema) : `(${typeOf(schema)})`;
}

function wholeNumber({ minimum, maximum }: JsonSchema): string {
  return `${minimum} to ${maximum}`;
}

function defaultOf(schema: JsonSchema, isRequired: boolean): string {
  if (isRequired) return '**required**';
  if (schema.reference !== undefined) return `\`${schema.reference}\``;
  const value = schema.default;
  if (value === undefined) return 'none';
  if (typeof value === 'object' && value !== null && Object.keys(value).length > 0) return listed(value);
  if (typeof value === 'object' && !Array.isArray(value)) return 'as below';
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
}

/** A default list in flow style; a list of maps has one item per line. */
function listed(value: object): string {
  const items = (value as readonly unknown[]).map((item) =>
    typeof item === 'object' && item !== null
      ? `{ ${Object.entries(item)
          .map(([key, one]) => `${key}: ${one}`)
          .join(', ')} }`
      : String(item),
  );
  return items.some((item) => item.startsWith('{'))
    ? items.map((item) => `\`${item}\``).join('<br>')
    : `\`[${items.join(', ')}]\``;
}
