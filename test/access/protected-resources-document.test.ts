import { describe, expect, test } from 'vitest';
import { buildChallenge } from '../../src/access/authenticate.ts';
import { compileProtectedList, type ProtectedList } from '../../src/access/protected-list.ts';
import { parseProtectedList } from '../../src/access/protected-list-document.ts';
import {
  answerDocument,
  createDocumentMatcher,
  createResourceMetadata,
  renderProtectedResources,
} from '../../src/access/published-documents.ts';
import { WatchedList } from '../../src/access/watched-list.ts';
import { checkList } from '../../src/admin/list-check.ts';
import type { CanonicalRequest } from '../../src/http/canonical-request.ts';
import { fieldValue } from '../../src/http/field-list.ts';
import type { Answer } from '../../src/http/rejection.ts';
import { finish } from '../../src/lib/slices.ts';

const first = `groups:
  Carts:
    - GET /carts/{cart_id}
    - { match: "ANY /carts/{cart_id}/**", scopes: [customer, analyst] }
  Reports:
    - { match: "GET /reports/**", scopes: [analyst] }
complete: true
`;

function compile(text: string): ProtectedList {
  const { list } = parseProtectedList(text, 'list.yaml');
  if (list === undefined) throw new Error('the list is broken');
  return compileProtectedList(list, { ignoredPrefixes: [] });
}

function ask(
  path: string,
  fields: string[] = [],
  method: CanonicalRequest['method'] = 'GET',
): CanonicalRequest {
  return {
    method,
    path,
    query: '',
    segments: path.slice(1).split('/'),
    fields,
    host: 'api.shop.example',
    scheme: 'https',
    clientAddress: '127.0.0.1',
    requestId: 'test',
    isFormPost: false,
    body: 'none',
    expectsContinue: false,
  };
}

const json = (answer: Answer) => JSON.parse(String(answer.body));
const tagOf = (answer: Answer) => fieldValue(answer.fields, 'etag') ?? '';

describe('GET /protected-resources', () => {
  test('each row, in the order of the list', () => {
    const answer = answerDocument(ask('/protected-resources'), rendered);
    expect(answer.status).toBe(200);
    expect(fieldValue(answer.fields, 'content-type')).toBe('application/vnd.api+json');
    expect(fieldValue(answer.fields, 'content-length')).toBe(String(answer.body?.length));
    const row = (group: string, method: string, path: string, scopes: string[]) => ({
      type: 'protected-resources',
      id: `${method} ${path}`,
      attributes: { group, method, path, scopes },
    });
    expect(json(answer)).toEqual({
      data: [
        row('Carts', 'GET', '/carts/{cart_id}', []),
        row('Carts', 'ANY', '/carts/{cart_id}/**', ['customer', 'analyst']),
        row('Reports', 'GET', '/reports/**', ['analyst']),
      ],
    });
  });

  const rendered = finish(renderProtectedResources(compile(first)));
  const tag = tagOf(answerDocument(ask('/protected-resources'), rendered));

  test.each([
    ['the tag', [tag], 304],
    ['weak', [`W/${tag}`], 304],
    ['in a list', [`"a,b", W/"c" ,${tag}`], 304],
    ['on a second line', ['"a"', tag], 304],
    ['with empty elements', [`,, ${tag} ,`], 304],
    ['*', [' * '], 304],
    ['another', ['"other"'], 200],
    ['without quotes', [tag.slice(1, -1)], 200],
    ['a broken list after it', [`${tag}, nonsense`], 200],
    ['empty', [''], 200],
  ])('If-None-Match: %s', (_, lines, status) => {
    const fields = lines.flatMap((line) => ['If-None-Match', line]);
    const answer = answerDocument(ask('/protected-resources', fields), rendered);
    expect([answer.status, tagOf(answer), answer.body === null]).toEqual([status, tag, status === 304]);
  });

  test('HEAD: the fields of GET, no body', () => {
    const [get, head] = (['GET', 'HEAD'] as const).map((method) =>
      answerDocument(ask('/protected-resources', [], method), rendered),
    );
    expect(head).toEqual({ ...get, body: null });
  });

  test.each([
    ['GET', '/protected-resources', true],
    ['HEAD', '/protected-resources', true],
    ['POST', '/protected-resources', undefined],
    ['OPTIONS', '/protected-resources', undefined],
    ['GET', '/protected-resources/x', undefined],
    ['GET', '/other', undefined],
  ] as const)('%s %s is this endpoint: %s', (method, path, isMatch) => {
    const { match } = createDocumentMatcher('list', '/protected-resources', 'the list');
    expect(match(ask(path, [], method))).toBe(isMatch);
  });

  test('another list is seen at once, and rendered once', async () => {
    const log = { info: () => {}, warn: () => {}, error: () => {}, debug: () => {} };
    const paths = { ignoredPrefixes: [] };
    const list = new WatchedList({
      ...{ paths, file: 'list.yaml', text: first, isWatched: false, log },
      compile: async (question, take) => checkList(question, take),
    });
    const before = answerDocument(ask('/list'), await list.rendered());
    expect(answerDocument(ask('/list'), await list.rendered()).body).toBe(before.body);
    await list.apply({ bytes: Buffer.from(first.replace('GET /carts/{cart_id}', 'GET /carts')) });
    const after = answerDocument(ask('/list', ['If-None-Match', tagOf(before)]), await list.rendered());
    expect([after.status, json(after).data[0].id]).toEqual([200, 'GET /carts']);
  });
});

describe('RFC 9728 metadata', () => {
  const compiled = compile(first);
  const path = '/.well-known/oauth-protected-resource';

  test('what is known is said, of the address that the client used', () => {
    const metadata = createResourceMetadata({ list: () => compiled });
    const answer = metadata.answer(ask(path));
    expect(json(answer)).toEqual({
      resource: 'https://api.shop.example',
      scopes_supported: ['customer', 'analyst'],
      bearer_methods_supported: ['header'],
    });
    expect(fieldValue(answer.fields, 'content-type')).toBe('application/json');
    expect(fieldValue(answer.fields, 'vary')).toBe('Host');
    expect(metadata.answer(ask(path, ['If-None-Match', tagOf(answer)])).status).toBe(304);
  });

  test('what is configured wins; a list without members is left out', () => {
    const metadata = createResourceMetadata({
      publicUrl: 'https://shop.example',
      authorizationServers: ['https://login.shop.example'],
      list: () => compile('groups: { A: [GET /a] }\ncomplete: true\n'),
    });
    expect(json(metadata.answer(ask(path)))).toEqual({
      resource: 'https://shop.example',
      authorization_servers: ['https://login.shop.example'],
      bearer_methods_supported: ['header'],
    });
    expect(metadata.url(ask('/carts'))).toBe('https://shop.example/.well-known/oauth-protected-resource');
  });

  test('challenges name it', () => {
    const metadata = createResourceMetadata({ list: () => compiled });
    const challenge = buildChallenge({ resourceMetadataUrl: metadata.url(ask('/carts')) });
    expect(challenge).toBe(
      'Bearer realm="Access to shop API", resource_metadata="https://api.shop.example/.well-known/oauth-protected-resource"',
    );
  });
});
