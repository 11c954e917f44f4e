import { connect } from 'node:tls';
import { resourceId } from '../../access/protected-list.ts';
import { metadataPath } from '../../access/published-documents.ts';
import { isObject } from '../../lib/json.ts';
import { caOf, type Deployment, type Reply } from './probe-client.ts';
import {
  type Check,
  checkRefusal,
  createCheck,
  documentOf,
  firstOf,
  replyText,
  type Verification,
} from './verification.ts';

/** Checks that the list which the deployment publishes is the local one. */
export async function checkPublishedList(verification: Verification): Promise<Check[]> {
  const { client, config, list } = verification;
  const path = config.protectedResourcesPath;
  const name = `GET ${path}`;
  const reply = await client.ask({ method: 'GET', path });
  const published = readRows(reply);
  if (published === undefined) {
    const advice = 'the proxy has not answered this: does the request reach it?';
    return [
      createCheck('list', name, false, '200 with the list', replyText(reply), advice),
      await checkMetadata(verification),
    ];
  }
  const own = new Map(list.rows.map((row) => [resourceId(row), row.scopes.toSorted().join(' ')]));
  const missing = [...own.keys()].filter((id) => !published.has(id));
  const extra = [...published.keys()].filter((id) => !own.has(id));
  const other = [...own].filter(([id, scopes]) => published.has(id) && published.get(id) !== scopes);
  const differences = [
    ...missing.map((id) => `not there: ${id}`),
    ...extra.map((id) => `only there: ${id}`),
    ...other.map(([id]) => `other scopes: ${id}`),
  ];
  const counts = `${published.size} rows, ${differences.length} differ`;
  return [
    createCheck(
      'list',
      name,
      differences.length === 0,
      `the ${own.size} rows of ${list.file}`,
      counts,
      shorten(differences),
    ),
    await checkListTag(verification, reply),
    await checkMetadata(verification),
  ];
}

async function checkListTag({ client, config }: Verification, { fields }: Reply): Promise<Check> {
  const path = config.protectedResourcesPath;
  const tag = fields.etag;
  const name = `GET ${path} with If-None-Match`;
  if (tag === undefined) return createCheck('list', name, false, '304', 'no ETag');
  const reply = await client.ask({ method: 'GET', path, fields: { 'If-None-Match': tag } });
  return createCheck('list', name, reply.status === 304, '304', replyText(reply));
}

/** Checks the resource metadata (RFC 9728 section 3.2). */
async function checkMetadata({ client }: Verification): Promise<Check> {
  const reply = await client.ask({ method: 'GET', path: metadataPath });
  const resource = documentOf(reply)?.resource;
  const isOk = typeof resource === 'string';
  return createCheck(
    'list',
    `GET ${metadataPath}`,
    isOk,
    '200 with resource',
    isOk ? resource : replyText(reply),
  );
}

/** Row -> its scopes, sorted. */
function readRows(reply: Reply): Map<string, string> | undefined {
  const data = documentOf(reply)?.data;
  if (!Array.isArray(data)) return undefined;
  const rows = data as readonly { id?: unknown; attributes?: { scopes?: unknown } }[];
  return new Map(
    rows.map(({ id, attributes }) => [
      String(id),
      Array.isArray(attributes?.scopes) ? attributes.scopes.toSorted().join(' ') : '',
    ]),
  );
}

function shorten(differences: readonly string[]): string {
  const shown = differences.slice(0, 10);
  const more = differences.length - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}

/** Checks the resolver's answers to no URL, to an unknown one, and to those of `--url`. */
export async function checkResolver(verification: Verification, urls: readonly string[]): Promise<Check[]> {
  const { client, config, rejections, id } = verification;
  // With another envelope the shop answers missing and unknown URLs itself.
  if (config.urlResolver === false || config.urlResolver.envelope !== 'jsonapi') return [];
  const { path, locales } = config.urlResolver;
  const ask = (query: string, more: Record<string, string> = {}) =>
    client.ask({
      method: 'GET',
      path: `${path}${query}`,
      fields: { 'Accept-Language': String(locales[0]), ...more },
    });
  const unknown = `/${locales[0]}/${id}`;
  const checks = [
    checkRefusal('resolver', `GET ${path}`, await ask(''), rejections['url-missing']),
    checkRefusal(
      'resolver',
      `GET ${path}?url=/${locales[0]}/ID`,
      await ask(`?url=${encodeURIComponent(unknown)}`),
      rejections['url-not-found'],
    ),
  ];
  for (const url of urls) {
    const query = `?url=${encodeURIComponent(url)}`;
    const name = `GET ${path}?url=${url}`;
    const reply = await ask(query);
    const entity = entityOf(reply);
    checks.push(
      createCheck(
        'resolver',
        name,
        entity !== undefined,
        '200 with entityType and entityId',
        entity ?? replyText(reply),
      ),
    );
    const tag = reply.fields.etag;
    if (entity === undefined || tag === undefined) continue;
    const again = await ask(query, { 'If-None-Match': tag });
    const conditional = `${name} with If-None-Match`;
    checks.push(createCheck('resolver', conditional, again.status === 304, '304', replyText(again)));
  }
  return checks;
}

function entityOf(reply: Reply): string | undefined {
  const attributes = firstOf(reply)?.attributes;
  const { entityType, entityId } = isObject(attributes) ? attributes : {};
  return typeof entityType === 'string' && typeof entityId === 'string'
    ? `${entityType} ${entityId}`
    : undefined;
}

interface TlsFinding {
  readonly check: Check;
  /** Whether the connection is safe for a token. */
  readonly isTrusted: boolean;
}

const soonMs = 14 * 86_400_000;

/** Checks certificate and protocol version of the deployment; undefined over plain HTTP. */
export async function checkTls(
  { scheme, host, port }: Deployment,
  ca: string | undefined,
  timeoutMs: number,
  now: number,
): Promise<TlsFinding | undefined> {
  if (scheme !== 'https') return undefined;
  const name = `${host}:${port}`;
  const expected = 'a certificate that is trusted, for this host, for two weeks more';
  return new Promise((resolve) => {
    const isName = !/^[\d.]+$|:/.test(host);
    const trusted = caOf(ca);
    const socket = connect({
      host,
      port,
      ...(isName && { servername: host }),
      ...(trusted && { ca: trusted }),
      rejectUnauthorized: false,
      timeout: timeoutMs,
    });
    const end = (isTrusted: boolean, isOk: boolean, got: string, advice?: string) => {
      socket.destroy();
      resolve({ isTrusted, check: createCheck('tls', name, isOk, expected, got, advice) });
    };
    socket.once('secureConnect', () => {
      const until = Date.parse(socket.getPeerCertificate().valid_to);
      const got = `${socket.getProtocol()}, valid until ${new Date(until).toISOString().slice(0, 10)}`;
      if (!socket.authorized) {
        const advice = 'clients refuse it; a token is not sent. --ca FILE names an authority of your own';
        end(false, false, `${got}, ${socket.authorizationError}`, advice);
      } else end(true, until - now > soonMs, got, 'renew the certificate');
    });
    socket.once('timeout', () => end(false, false, 'no answer in time'));
    socket.once('error', (fault: NodeJS.ErrnoException) => end(false, false, fault.code ?? fault.message));
  });
}
