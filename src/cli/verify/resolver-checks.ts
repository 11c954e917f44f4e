import { type Check, createCheck } from './check.ts';
import type { NoReply, Reply } from './probe-client.ts';
import { checkRefusal, parseJson, replyText } from './refusal.ts';
import type { Verification } from './verification.ts';

/** The resolver's three answers: no URL, an unknown one, and those that were named. */
export async function checkResolver(verification: Verification, urls: readonly string[]): Promise<Check[]> {
  const { client, config, rejections, id } = verification;
  if (config.urlResolver === false) return [];
  const { path, defaultLocale } = config.urlResolver;
  const ask = (query: string, more: Record<string, string> = {}) =>
    client.ask({
      method: 'GET',
      path: `${path}${query}`,
      fields: { 'Accept-Language': defaultLocale, ...more },
    });
  const unknown = `/${defaultLocale}/${id}`;
  const checks = [
    checkRefusal('resolver', `GET ${path}`, await ask(''), rejections['url-missing']),
    checkRefusal(
      'resolver',
      `GET ${path}?url=/${defaultLocale}/ID`,
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
    const tag = 'fault' in reply ? undefined : reply.fields.etag;
    if (entity === undefined || tag === undefined) continue;
    const again = await ask(query, { 'If-None-Match': tag });
    const isUnchanged = !('fault' in again) && again.status === 304;
    checks.push(createCheck('resolver', `${name} with If-None-Match`, isUnchanged, '304', replyText(again)));
  }
  return checks;
}

function entityOf(reply: Reply | NoReply): string | undefined {
  if ('fault' in reply || reply.status !== 200) return undefined;
  const document = parseJson(reply.body) as
    | { data?: readonly { attributes?: { entityType?: unknown; entityId?: unknown } }[] }
    | undefined;
  const attributes = Array.isArray(document?.data) ? document.data[0]?.attributes : undefined;
  const { entityType, entityId } = attributes ?? {};
  return typeof entityType === 'string' && typeof entityId === 'string'
    ? `${entityType} ${entityId}`
    : undefined;
}
