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
import { lineKinds, type Reader, readersOf, targetKinds, textKinds } from './texts.ts';

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

/** Functions that read a text, called directly, with texts as long as they can get. */
export const pureReaders: readonly Reader[] = [
  ...readersOf(field, textKinds, {
    'a list of entity tags': (text) => parseEntityTags([text], 'strict'),
    'a list of entity tags, leniently': (text) => readIfMatch([text], [text], 'lenient'),
    'an ETag of the shop': parseStrongTag,
    'a Vary of the shop': (text) => readVary([text]),
    'a Keep-Alive of the shop': (text) => idleTimeoutSaid(['Keep-Alive', text]),
    'cookies that may contain a token': (text) => present(['Cookie', text]),
    'a token in a cookie': (text) => present(['Cookie', `url=${text}`, 'Origin', text]),
    'subprotocols with a token': (text) => present(['Sec-WebSocket-Protocol', `${text}, url, ${text}`]),
    'a Referer': (text) => withoutReferredToken({ ...handshake, fields: ['Referer', text] }, ['url', 'jwt']),
    'the fields of a private answer': (text) =>
      toPrivate(['Cache-Control', text, text, text, 'Vary', text], true),
    'a Location of the shop': (text) => [
      refer(text),
      refer(`http://${text}`),
      refer(`//shop:9000/api/${text}`),
    ],
  }),
  ...readersOf(12_000, textKinds, { 'a claim as a field': encodeIdentity }),
  // An id that fits in no path is ignored, so this is the longest.
  ...readersOf(8191, textKinds, {
    'an id that is folded': (text) => [foldId(text), memberKey('/carts/{id}', [text])],
  }),
  ...readersOf(10_000, textKinds, { 'an id in an answer': readId }),
  ...readersOf(body, textKinds, {
    'an answer that is no JSON': (text) => createdId(Buffer.from(text)),
    'an answer with members to ignore': (text) => fingerprintWithout(Buffer.from(text), ['/data/a']),
    'a fault in the log': withoutCredentials,
    'a URL of a purge': foldUrl,
    'an answer of the shop to the resolver': (text) => validateResponse(reply(text), contractEntityTypes),
    'the fields of an answer to the resolver': (text) =>
      validateResponse(reply('{}', `application/json${text}`), contractEntityTypes),
    'a fault of Redis': (text) => toRedisFault(Object.assign(new Error(text), { name: 'ReplyError' })),
  }),
  ...readersOf(8192, textKinds, {
    'a segment that is folded': (text) => [foldSegment(text), foldCase(text)],
    'a path in the log': (text) => createRedactPath(['refresh-tokens'])(text.split('/')),
  }),
  ...readersOf(16_384, textKinds, {
    'a refresh token': canonicalToken,
    'an address of Redis': (text) => attempt(() => parseRedisUrl(`redis://${text}`)),
    'a pasted token': readPastedToken,
  }),
  ...readersOf(file, textKinds, {
    'a key document': (text) => readKeyDocument(text, ['RS256']),
    'a PEM file': (text) => readKeyDocument(`-----BEGIN ${text}-----BEGIN PUBLIC KEY-----${text}`, ['RS256']),
  }),
  ...readersOf(32_768, textKinds, {
    'a text pasted for explain': (text) => explainText(text),
    'a curl command': (text) => explainText(`curl ${text}`),
    'a curl command in quotes': (text) => explainText(`curl -H '${text}' "${text}`),
    'a curl command of cmd.exe': (text) => explainText(`curl ^"${text}^"`),
    'a HAR entry': (text) => explainText(harEntry(text)),
    'a record of our log': (text) => explainText(logRecord(text)),
  }),
  ...readersOf(
    4 * sliced,
    textKinds,
    {
      'an id in a long answer': readId,
      'a long answer that is no JSON': (text) => createdId(Buffer.from(text)),
    },
    { start: sliced, isBeside: true },
  ),
  ...readersOf(field, targetKinds, {
    'a query that may contain a token': (text) => present([], `?${text}`),
    'a query of the resolver': (text) => readResolverQuery(`?${text}`),
    'a url of the resolver': (text) => readResolverQuery(`?url=${text}`),
  }),
  ...readersOf(32_768, lineKinds, {
    'a line pasted for explain': (text) => explainText(`GET /${text} HTTP/1.1`),
  }),
  // Read in worker threads, or before the proxy serves requests.
  ...readersOf(
    file,
    textKinds,
    {
      'a text as a whole list': (text) => parseProtectedList(text, 'list.yaml'),
      'a row of a list': (text) => parseProtectedList(listRow(text), 'list.yaml'),
      'a path of a list': (text) => parseProtectedList(listValue(text), 'list.yaml'),
      'a configuration': (text) => parseSourceDocument(text, 'shopward.yaml'),
      'references in a configuration': (text) => substituteReferences(text, references),
    },
    { isBeside: true },
  ),
];

function attempt(run: () => unknown): void {
  try {
    run();
  } catch {
    // A refused text has been read too.
  }
}
