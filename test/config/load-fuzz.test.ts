import fc from 'fast-check';
import { expect, it } from 'vitest';
import { configJsonSchema } from '../../src/config/json-schema.ts';
import { validateConfig } from '../../src/config/load.ts';
import { parseSourceDocument, readPlainValue } from '../../src/config/source-document.ts';
import { anyText } from '../harness/any-text.ts';
import { loadText } from './config-folder.ts';

const known = Object.keys(configJsonSchema().properties ?? {});
const nested = known.flatMap((key) => {
  const schema = configJsonSchema().properties?.[key] ?? {};
  return [schema, ...(schema.anyOf ?? [])].flatMap(({ properties = {} }) => Object.keys(properties));
});
const word = fc.constantFrom(
  ...[...known, ...nested, '__proto__', 'constructor', '<<', '30s', '64KiB', 'false', 'null', '~', '0x10'],
  ...['1e999', '.nan', '${A}', '${A:-1}', '${', '$${', '${file:x}', '*a', '&a', '!!binary', '!x', '|', '>'],
  ...['---', '...', '%YAML 1.1', '?', '-'],
);
const glue = fc.constantFrom(
  ...[' ', '\n', '\n  ', '\n    ', ': ', '\n- ', ', ', '{ ', ' }', '[', ']', '"', "'", '#', '\t', '\r'],
  ...['\u0000', '\uFEFF'],
);
const yamlish = fc
  .array(
    fc.oneof({ weight: 3, arbitrary: word }, { weight: 4, arbitrary: glue }, anyText({ maxLength: 5 })),
    {
      maxLength: 40,
    },
  )
  .map((parts) => parts.join(''));

const sources = { variables: { A: '5' }, readFile: () => ({ text: 'secret' }) };

/** What the loader does between reading the text and the named files. */
function validate(text: string) {
  const document = parseSourceDocument(text, 'c.yaml');
  const plain = readPlainValue(document.root, sources);
  const { problems } = validateConfig(plain.value, plain.problems);
  return [...document.problems, ...problems.map(({ path, text: words }) => document.problemAt(path, words))];
}

it('any text gives problems with a line, a column and one line of words', () => {
  fc.assert(
    fc.property(yamlish, (text) => {
      const lines = text.split(/\r\n|\n|\r/).length;
      const wrong = validate(text).filter(
        ({ line, column, text: words }) =>
          !(line >= 1 && line <= lines && column >= 1 && /^[^\n]+$/.test(words)),
      );
      expect(wrong).toEqual([]);
    }),
    { numRuns: 3000 },
  );
});

it('any bytes give problems or a configuration', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(yamlish, fc.uint8Array({ maxLength: 60 })), async (content) => {
      const result = await loadText(content);
      expect('problems' in result ? result.problems.length : 1).toBeGreaterThan(0);
    }),
    { numRuns: 100 },
  );
});

it('a configuration that is cut off anywhere is refused, or says the same', async () => {
  const whole = 'auth: { keys: { jwks: "https://shop.example/jwks.json" } }\nlisten: { port: 8443 }\n';
  for (let length = 0; length < whole.length; length++) {
    const problems = validate(whole.slice(0, length));
    const isWithoutListener = whole.slice(0, length).trimEnd().endsWith('} }');
    expect(
      problems.length > 0 || isWithoutListener || length >= whole.length - 1,
      whole.slice(0, length),
    ).toBe(true);
  }
});
