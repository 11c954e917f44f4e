import { expect, it } from 'vitest';
import { refusalOf } from './request-facts.ts';
import { accepted, sampleHead } from './sample-request.ts';

/** Framings that Node's parser refuses. Those that pass it are in smuggling.yaml of the corpus, and so is Expect. */
it.each([
  ['Transfer-Encoding and Content-Length', ['Transfer-Encoding', 'chunked', 'Content-Length', '5']],
  ['+1', ['Content-Length', '+1']],
  ['-1', ['Content-Length', '-1']],
  ['1, 1', ['Content-Length', '1, 1']],
  ['1.0', ['Content-Length', '1.0']],
  ['0x5', ['Content-Length', '0x5']],
  ['1e2', ['Content-Length', '1e2']],
  ['no length', ['Content-Length', '']],
  ['a length over the limit', ['Content-Length', '1001'], 'payload-too-large'],
  ['an overflow', ['Content-Length', '9'.repeat(400)], 'payload-too-large'],
  ['an empty coding', ['Transfer-Encoding', ''], 'transfer-encoding-unsupported'],
  ['VT before chunked', ['Transfer-Encoding', '\u000bchunked'], 'transfer-encoding-unsupported'],
  ['a coding after chunked', ['Transfer-Encoding', 'chunked, identity'], 'transfer-encoding-unsupported'],
])('refuses a body framed with %s, on every method', (_name, fields, rejection = 'bad-request-fields') => {
  for (const method of ['POST', 'PATCH', 'DELETE', 'OPTIONS', 'GET', 'HEAD'])
    expect(refusalOf({ method, fields })).toBe(rejection);
});

it.each<[string, NonNullable<Parameters<typeof sampleHead>[0]>]>([
  ['a request without a body', {}],
  ['HTTP/1.0', { httpVersionMinor: 0, fields: ['Content-Length', '5'] }],
])('Expect: 100-continue of %s is not answered', (_name, { fields = [], ...head }) => {
  const request = accepted(
    sampleHead({ method: 'POST', fields: ['Expect', '100-continue', ...fields], ...head }),
  );
  expect(request.expectsContinue).toBe(false);
});
