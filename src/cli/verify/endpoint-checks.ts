import { resourceId } from '../../access/protected-list.ts';
import { addressOf, findRefusedAnswers, isReachable } from '../shop-answer.ts';
import type { Deployment, Reply } from './probe-client.ts';
import { type Check, createCheck, documentOf, replyText, skip, type Verification } from './verification.ts';

/** Checks that the deployment publishes the local list. */
export async function checkPublishedList(verification: Verification): Promise<Check[]> {
  const { client, config, list } = verification;
  const path = config.protectedResourcesPath;
  const name = `GET ${path}`;
  const reply = await client.ask(path);
  const published = readRows(reply);
  if (published === undefined) {
    const advice = 'the proxy has not answered this: does the request reach it?';
    return [createCheck('list', name, false, '200 with the list', replyText(reply), advice)];
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
  ];
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

/** With a larger difference the proxy refuses good tokens or accepts expired ones. */
const leastSkewMs = 30_000;

/** Checks the clock of the proxy by the `Date` of one of its own answers. */
export async function checkClock({ client, config }: Verification): Promise<Check[]> {
  const sentMs = Date.now();
  const { fields } = await client.ask(config.protectedResourcesPath);
  const there = Date.parse(fields.date ?? '');
  if (Number.isNaN(there)) return [skip('clock', 'Date', 'the answer has no Date')];
  const ms = there < sentMs ? there - sentMs : Math.max(0, there - Date.now());
  const allowed = Math.max(leastSkewMs, config.auth.clockTolerance);
  // `Date` counts whole seconds.
  const off = Math.max(0, Math.round(Math.abs(ms) / 1000) - 1);
  const got = off === 0 ? 'as here' : `${off} s ${ms < 0 ? 'behind' : 'ahead of'} this machine`;
  const advice = 'one of the clocks is wrong, and the proxy checks tokens by its own: synchronise it (NTP)';
  const expected = `at most ${allowed / 1000} s off`;
  return [createCheck('clock', 'Date', Math.abs(ms) <= allowed, expected, got, advice)];
}

/**
 * Checks that this machine cannot bypass the proxy. If it may (`--inside`, or a loopback address), checks
 * that the proxy accepts the shop's answers.
 */
export async function checkShop(
  { config }: Verification,
  { host }: Pick<Deployment, 'host'>,
  { isInside, timeoutMs }: { readonly isInside: boolean; readonly timeoutMs: number },
): Promise<Check[]> {
  const url = new URL(config.upstream.url);
  const shop = addressOf(url);
  const checks: Check[] = [];
  if (isLoopback(shop.host) && !isLoopback(host)) {
    // A shop on the proxy's machine may also listen on the machine's other addresses.
    checks.push(await checkClosed({ ...shop, host }, timeoutMs));
    if (!isInside) return checks;
  }
  if (!isInside && !isLoopback(shop.host)) return [await checkClosed(shop, timeoutMs)];
  const name = `answers of ${url.origin}`;
  if (!(await isReachable(shop, timeoutMs)))
    return [...checks, skip('shop', name, 'the shop cannot be reached from here')];
  const refused = await findRefusedAnswers(shop, [url.pathname, '/shopward-verify'], timeoutMs);
  const advice = 'fix the shop, or put a server in front of it that rewrites its answers';
  const got = refused[0] ?? 'taken';
  return [
    ...checks,
    createCheck('shop', name, refused.length === 0, 'answers that shopward takes', got, advice),
  ];
}

async function checkClosed(shop: ReturnType<typeof addressOf>, timeoutMs: number): Promise<Check> {
  const isOpen = await isReachable(shop, timeoutMs);
  const advice =
    'clients on this network can bypass the proxy: close the port to all but the proxy, or run verify with --inside on a machine that may reach the shop';
  const got = isOpen ? 'open' : 'closed';
  return createCheck('shop', `port ${shop.host}:${shop.port} of the shop`, !isOpen, 'closed', got, advice);
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.');
}
