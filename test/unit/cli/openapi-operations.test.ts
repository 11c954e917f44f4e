import { expect, it } from 'vitest';
import { parseOpenApi } from '../../../src/cli/protected/openapi-document.ts';

it('a key that looks like a number is refused', () => {
  const withPaths = (paths: string) => parseOpenApi(Buffer.from(`openapi: 3.1.0\npaths:\n${paths}\n`));
  expect(withPaths('  /a: { get: { responses: { 200: {}, 1.0: {} } } }')).toMatchObject({
    document: { paths: { '/a': { get: { responses: { '200': {}, '1.0': {} } } } } },
  });
  expect(withPaths('  ? /a: b\n  : {}')).toEqual({
    fault: 'it is neither JSON nor YAML: With stringKeys, all keys must be strings at line 3, column 7',
  });
});

it.each(['[', '{a: ', '- ', '? '])('thousands of %s are refused as nested too deeply', (chunk) => {
  const fault = 'it is neither JSON nor YAML: this is nested too deeply';
  expect(parseOpenApi(Buffer.from(chunk.repeat(3000)))).toEqual({ fault });
});
