import { readFileSync } from 'node:fs';
import path from 'node:path';
import { encodeIdentity } from '../../../src/access/identity-fields.ts';
import { readKeyDocument } from '../../../src/access/key-document.ts';
import { compileProtectedList } from '../../../src/access/packed-list.ts';
import { parseProtectedList } from '../../../src/access/protected-list-document.ts';
import { readPresentedToken, withoutReferredToken } from '../../../src/access/token-locations.ts';
import { explainPasted } from '../../../src/cli/explain/explain-pasted.ts';
import { explanationText } from '../../../src/cli/explain/explanation-text.ts';
import { readPastedToken } from '../../../src/cli/explain/pasted-request.ts';
import { validateConfig } from '../../../src/config/load.ts';
import type { Config } from '../../../src/config/schema.ts';
import { parseSourceDocument, substituteReferences } from '../../../src/config/source-document.ts';
import { createdId } from '../../../src/entity-tags/json-api.ts';
import { foldId, memberKey, readIfMatch, readVary } from '../../../src/entity-tags/keys.ts';
import { fingerprintWithout } from '../../../src/entity-tags/representation.ts';
import { parseEntityTags, parseStrongTag } from '../../../src/http/entity-tag-list.ts';
import { foldCase, foldSegment } from '../../../src/http/path-folding.ts';
import { toRedisFault } from '../../../src/redis/faults.ts';
import { parseRedisUrl } from '../../../src/redis/redis-url.ts';
import { canonicalToken } from '../../../src/refresh-tokens/token-digest.ts';
import { toPrivate } from '../../../src/server/own-fields.ts';
import { createRedactPath } from '../../../src/telemetry/exchange-record.ts';
import { withoutCredentials } from '../../../src/telemetry/log.ts';
import { PublicReferences } from '../../../src/upstream/response-fields.ts';
import { idleTimeoutSaid } from '../../../src/upstream/upstream-call.ts';
import { contractEntityTypes } from '../../../src/url-resolver/envelope.ts';
import { foldUrl } from '../../../src/url-resolver/purges.ts';
import { readResolverQuery } from '../../../src/url-resolver/resolver-query.ts';
import { validateResponse } from '../../../src/url-resolver/source.ts';
import { accepted, sampleHead } from '../../unit/http/sample-request.ts';
import { lineKinds, type Reader, targetKinds, textKinds } from './texts.ts';

const listFile = path.join(import.meta.dirname, '../../../config/protected-resources.yaml');
const shipped = parseProtectedList(readFileSync(listFile, 'utf8'), listFile).list;
if (shipped === undefined) throw new Error('the shipped list is broken');
const list = compileProtectedList(shipped, { ignoredPrefixes: ['/index.php'] });
const { config } = validateConfig({ auth: { keys: { jwks: 'https://shop.example/keys' } } }) as {
  config: Config;
};

const field = 60_000;
const body = 65_536;
/** Files and answers may be longer, but a cost that grows too fast shows at this length. */
const file = 65_536;
/** Answers that are longer than 64 KiB are scanned in slices. */
const sliced = 81_920;

const references = { variables: {}, readFile: () => ({ fault: 'none' }) };

/** Puts the text into a document. */
type Frame = (text: string) => string;
const json: Frame = (text) => JSON.stringify({ data: { type: 'carts', id: text } });
/** What `shopward explain` and the console do with a pasted text, except the cryptography of tokens. */
const explainText = (text: string) => {
  const { explained } = explainPasted(text, { method: 'GET' }, config, list);
  return explanationText(explained, explained.notes);
};
const listRow: Frame = (text) => `groups:\n  A:\n    - GET ${text}\ncomplete: true\n`;
const listValue: Frame = (text) =>
  `groups:\n  A:\n    - { match: ${JSON.stringify(`GET /${text}`)} }\ncomplete: true\n`;

const harEntry: Frame = (text) =>
  JSON.stringify({
    request: {
      method: 'POST',
      url: `https://s/${text}`,
      headers: [{ name: text, value: text }],
      postData: { text },
    },
  });
const logRecord: Frame = (text) =>
  JSON.stringify({
    requestId: text,
    method: 'GET',
    path: `/${text}`,
    decision: 'refused',
    status: 401,
    rejection: text,
  });

const reply = (content: string, type = 'application/json') => ({
  status: 200,
  fields: ['Content-Type', type, 'Cache-Control', type],
  body: Buffer.from(content),
});

/** A handshake whose row accepts a token in every location. The name is `url` since some test texts contain it in other spellings. */
const handshake = accepted(sampleHead({ fields: ['Connection', 'Upgrade', 'Upgrade', 'websocket'] }), {
  webSocket: true,
});
const present = (fields: readonly string[], query = '') =>
  readPresentedToken(
    { ...handshake, fields, query },
    ['header', 'cookie:url', 'query:url', 'subprotocol:url'],
    ['https://shop.example'],
    true,
  );
const publicReferences = new PublicReferences({
  upstream: { hostname: 'shop', port: 9000, path: '/api' },
  publicUrl: 'https://shop.example',
});
const refer = (location: string) => publicReferences.toPublic(location, handshake);

const readId = async (text: string) => foldId((await createdId(Buffer.from(json(text)))) ?? '');

/** `limit`: the longest text. `start`: the shortest text to measure, for texts that are read in slices. */
type Row = readonly [name: string, limit: number, read: (text: string) => unknown, start?: number];

const rows: readonly Row[] = [
  ['a list of entity tags', field, (text) => parseEntityTags([text], 'strict')],
  ['a list of entity tags, leniently', field, (text) => readIfMatch([text], [text], 'lenient')],
  ['an ETag of the shop', field, parseStrongTag],
  ['a Vary of the shop', field, (text) => readVary([text])],
  ['a Keep-Alive of the shop', field, (text) => idleTimeoutSaid(['Keep-Alive', text])],
  ['cookies among which a token may stand', field, (text) => present(['Cookie', text])],
  ['a token in a cookie', field, (text) => present(['Cookie', `url=${text}`, 'Origin', text])],
  [
    'subprotocols with a token',
    field,
    (text) => present(['Sec-WebSocket-Protocol', `${text}, url, ${text}`]),
  ],
  [
    'a Referer',
    field,
    (text) => withoutReferredToken({ ...handshake, fields: ['Referer', text] }, ['url', 'jwt']),
  ],
  [
    'the fields of a private answer',
    field,
    (text) => toPrivate(['Cache-Control', text, text, text, 'Vary', text], true),
  ],
  [
    'a Location of the shop',
    field,
    (text) => [refer(text), refer(`http://${text}`), refer(`//shop:9000/api/${text}`)],
  ],
  ['a claim as a field', 12_000, encodeIdentity],
  // An id that fits in no path is ignored, so this is the longest.
  ['an id that is folded', 8191, (text) => [foldId(text), memberKey('/carts/{id}', [text])]],
  ['an id in an answer', 10_000, readId],
  ['an id in a long answer', 4 * sliced, readId, sliced],
  ['an answer that is no JSON', body, (text) => createdId(Buffer.from(text))],
  ['a long answer that is no JSON', 4 * sliced, (text) => createdId(Buffer.from(text)), sliced],
  ['an answer with members to ignore', body, (text) => fingerprintWithout(Buffer.from(text), ['/data/a'])],
  ['a segment that is folded', 8192, (text) => [foldSegment(text), foldCase(text)]],
  ['a path in the log', 8192, (text) => createRedactPath(['refresh-tokens'])(text.split('/'))],
  ['a fault in the log', body, withoutCredentials],
  ['a refresh token', 16_384, canonicalToken],
  ['a key document', file, (text) => readKeyDocument(text, ['RS256'])],
  [
    'a PEM file',
    file,
    (text) => readKeyDocument(`-----BEGIN ${text}-----BEGIN PUBLIC KEY-----${text}`, ['RS256']),
  ],
  ['a URL of a purge', body, foldUrl],
  ['a reply of the shop to a question', body, (text) => validateResponse(reply(text), contractEntityTypes)],
  [
    'the fields of such a reply',
    body,
    (text) => validateResponse(reply('{}', `application/json${text}`), contractEntityTypes),
  ],
  ['a fault of Redis', body, (text) => toRedisFault(Object.assign(new Error(text), { name: 'ReplyError' }))],
  ['an address of Redis', 16_384, (text) => attempt(() => parseRedisUrl(`redis://${text}`))],
  ['a text pasted for explain', 32_768, (text) => explainText(text)],
  ['a curl command', 32_768, (text) => explainText(`curl ${text}`)],
  ['a curl command in quotes', 32_768, (text) => explainText(`curl -H '${text}' "${text}`)],
  ['a curl command of cmd', 32_768, (text) => explainText(`curl ^"${text}^"`)],
  ['a HAR entry', 32_768, (text) => explainText(harEntry(text))],
  ['a record of our log', 32_768, (text) => explainText(logRecord(text))],
  ['a pasted token', 16_384, readPastedToken],
];

/** Read in worker threads, or before the proxy serves requests. */
const files: readonly Row[] = [
  ['a list, as it is', file, (text) => parseProtectedList(text, 'list.yaml')],
  ['a row of a list', file, (text) => parseProtectedList(listRow(text), 'list.yaml')],
  ['a path of a list', file, (text) => parseProtectedList(listValue(text), 'list.yaml')],
  ['a configuration', file, (text) => parseSourceDocument(text, 'shopward.yaml')],
  ['references in a configuration', file, (text) => substituteReferences(text, references)],
];

/** Functions that read a text, called directly, with texts as long as they can get. */
export const pureReaders: readonly Reader[] = [
  ...rows.map(([name, limit, read, start]) => ({
    name,
    limit,
    start,
    isBeside: start !== undefined,
    kinds: textKinds,
    read,
  })),
  ...files.map(([name, limit, read]) => ({ name, limit, isBeside: true, kinds: textKinds, read })),
  {
    name: 'a query in which a token may stand',
    limit: field,
    kinds: targetKinds,
    read: (text) => present([], `?${text}`),
  },
  {
    name: 'a query of the resolver',
    limit: field,
    kinds: targetKinds,
    read: (text) => readResolverQuery(`?${text}`),
  },
  {
    name: 'a url of the resolver',
    limit: field,
    kinds: targetKinds,
    read: (text) => readResolverQuery(`?url=${text}`),
  },
  {
    name: 'a line pasted for explain',
    limit: 32_768,
    kinds: lineKinds,
    read: (text) => explainText(`GET /${text} HTTP/1.1`),
  },
];

function attempt(run: () => unknown): void {
  try {
    run();
  } catch {
    // A refused text has been read too.
  }
}
