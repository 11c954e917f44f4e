import { expect, it } from 'vitest';
import { parseOpenApi } from '../../../src/cli/protected/openapi-document.ts';
import { basePathOf, toTemplate } from '../../../src/cli/protected/openapi-operations.ts';

it.each([
  ['/carts/{id}', '/carts/{id}', undefined],
  ['carts//{id}/?a=1#b', '/carts/{id}', undefined],
  ['/', '/', undefined],
  ['/files/{name}.pdf', '/files/{name_pdf}', '"{name}.pdf" became a parameter'],
  ['/{id}/{id}/{id}', '/{id}/{id_2}/{id_3}', undefined],
  ['/{a}.x/{1}.y', '/{a_x}/{p_1_y}', '"{a}.x", "{1}.y" became a parameter'],
])('%s is the row %s', (path, template, note) => {
  expect(toTemplate(path)).toEqual({ template, note });
});

it.each([
  ['https://api.shop.example/v2/', '/v2'],
  ['https://api.shop.example', ''],
  ['//api.shop.example/v2', '/v2'],
  ['/v2', '/v2'],
  ['./v2', '/v2'],
  ['.', ''],
  ['{scheme}://api.shop.example/v2', ''],
])('a server at %s has the base path "%s"', (url, path) => {
  expect(basePathOf(url)).toBe(path);
});

it('a key of a document is a string, also where it looks like a number', () => {
  const withPaths = (paths: string) => parseOpenApi(Buffer.from(`openapi: 3.1.0\npaths:\n${paths}\n`));
  expect(withPaths('  /a: { get: { responses: { 200: {}, 1.0: {} } } }')).toMatchObject({
    document: { paths: { '/a': { get: { responses: { '200': {}, '1.0': {} } } } } },
  });
  expect(withPaths('  ? /a: b\n  : {}')).toEqual({
    fault: 'it is neither JSON nor YAML: With stringKeys, all keys must be strings at line 3, column 7',
  });
});

it.each(['[', '{a: ', '- ', '? '])('thousands of %s are refused in the words of a list', (piece) => {
  const fault = 'it is neither JSON nor YAML: this is nested too deeply';
  expect(parseOpenApi(Buffer.from(piece.repeat(3000)))).toEqual({ fault });
});
