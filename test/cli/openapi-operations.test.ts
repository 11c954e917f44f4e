import { expect, it } from 'vitest';
import { basePathOf, toTemplate } from '../../src/cli/protected/openapi-operations.ts';

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
