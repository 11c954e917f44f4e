import {
  type Check,
  checkRefusal,
  createCheck,
  createRefusalTest,
  eachAtOnce,
  isRefusal,
  type RowProbe,
  rejectionText,
  replyText,
  rowProbes,
  skip,
  type Verification,
} from './verification.ts';

/** Whether anybody answers at all; otherwise nothing else needs to be tried. */
export async function checkReach({ client, id }: Verification): Promise<Check> {
  const reply = await client.ask({ method: 'GET', path: `/${id}` });
  return createCheck('reach', 'GET /ID', !('fault' in reply), 'any answer', replyText(reply));
}

/** Routes that no row names must reach the shop, whatever it says to them. */
export async function checkOpenRoutes(
  verification: Verification,
  named: readonly string[],
): Promise<Check[]> {
  const { client, rejections, id } = verification;
  const isProtected = createRefusalTest(verification);
  const paths = named.length > 0 ? named : [`/${id}`];
  const checks: Check[] = [];
  for (const path of paths) {
    const name = `GET ${path.replaceAll(id, 'ID')}`;
    if (isProtected('GET', path.split('?')[0] ?? '')) {
      checks.push(skip('open', name, 'the list protects it; name an open route with --open PATH'));
      continue;
    }
    const reply = await client.ask({ method: 'GET', path });
    const isGatewayFault = 'fault' in reply || [502, 503, 504].includes(reply.status);
    const isOk = !isGatewayFault && !isRefusal(reply, rejections['access-token-missing']);
    const advice = isGatewayFault
      ? 'the shop was not reached'
      : 'it needs a token there, and none by the list';
    checks.push(createCheck('open', name, isOk, 'an answer of the shop', replyText(reply), advice));
  }
  return checks;
}

const isOpenAdvice = 'nothing refuses it: the proxy has another list, or requests reach the shop around it';

/** Each GET row, asked without a token. */
export function checkRows(verification: Verification): Promise<Check[]> {
  const isRefused = createRefusalTest(verification);
  const reads = rowProbes(verification).filter(({ method }) => method === 'GET');
  return eachAtOnce(reads, verification.concurrency, async (probe) => {
    if (!isRefused('GET', probe.path)) return skip('rows', nameOf(probe), 'observe mode: it is not refused');
    const reply = await verification.client.ask({ method: 'GET', path: probe.path });
    return checkRefusal(
      'rows',
      nameOf(probe),
      reply,
      verification.rejections['access-token-missing'],
      isOpenAdvice,
    );
  });
}

/**
 * The other rows, one after the other. Where nothing guards the shop such a request would reach it: so only when reads
 * were refused, never a DELETE without an id, those without an id last, and no more after one that was not refused.
 */
export async function checkUnsafeRows(
  verification: Verification,
  options: { readonly isWanted: boolean; readonly areReadsRefused: boolean },
): Promise<Check[]> {
  const { client, rejections } = verification;
  const isRefused = createRefusalTest(verification);
  const probes = rowProbes(verification).filter(({ method }) => method !== 'GET');
  if (probes.length === 0) return [];
  if (!options.isWanted) {
    return [skip('unsafe', `${probes.length} rows`, 'they change things; --unsafe-methods tries them too')];
  }
  if (!options.areReadsRefused) {
    return [skip('unsafe', `${probes.length} rows`, 'reads are not refused: these would reach the shop')];
  }
  const checks: Check[] = [];
  let isUnguarded = false;
  const inTurn: UnsafeProbe[] = [
    ...probes.toSorted((a, b) => Number(b.hasId) - Number(a.hasId)),
    ...overrides(probes),
  ];
  for (const probe of inTurn) {
    const name = nameOf(probe);
    if (isUnguarded) checks.push(skip('unsafe', name, 'one before it was not refused'));
    else if (!isRefused(probe.method, probe.path))
      checks.push(skip('unsafe', name, 'observe mode: it would reach the shop'));
    else if (probe.method === 'DELETE' && !probe.hasId)
      checks.push(skip('unsafe', name, 'a DELETE without an id is never tried'));
    else {
      const { path, query = '', fields = {} } = probe;
      const method = probe.override === undefined ? probe.method : 'POST';
      const reply = await client.ask({ method, path: path + query, fields, body: '{}' });
      const expected = probe.override === undefined ? 'access-token-missing' : 'method-override';
      const check = checkRefusal('unsafe', name, reply, rejections[expected], isOpenAdvice);
      isUnguarded = check.outcome === 'failed';
      checks.push(check);
    }
  }
  return checks;
}

interface UnsafeProbe extends RowProbe {
  readonly override?: string;
  readonly query?: string;
  readonly fields?: Readonly<Record<string, string>>;
}

/** A DELETE or PATCH that says POST: the shop acts on the method that is named in the query or in a field. */
function overrides(probes: readonly RowProbe[]): UnsafeProbe[] {
  const probe = probes.find(({ method, hasId }) => hasId && (method === 'DELETE' || method === 'PATCH'));
  if (probe === undefined) return [];
  const { method } = probe;
  return [
    { ...probe, override: `?_method=${method}`, query: `?_method=${method}` },
    { ...probe, override: 'X-HTTP-Method-Override', fields: { 'X-HTTP-Method-Override': method } },
  ];
}

function nameOf({ row, method, override }: UnsafeProbe): string {
  return override === undefined
    ? `${method} ${row.template}`
    : `POST ${row.template} as ${method} by ${override}`;
}

/**
 * Other spellings of a few protected paths that some shop takes for the same. Each must be refused: by the row, or as a
 * request that is not acceptable.
 */
export async function checkSpellings(
  verification: Verification,
  { areReadsRefused }: { readonly areReadsRefused: boolean },
): Promise<Check[]> {
  if (!areReadsRefused)
    return [skip('spelling', 'other spellings', 'not even the rows themselves are refused')];
  const { client, config, rejections } = verification;
  const expected = rejections['access-token-missing'];
  const paths = samples(verification).flatMap(({ path }) => spellings(path, config.request.ignoredPrefixes));
  return eachAtOnce(paths, verification.concurrency, async (path) => {
    const reply = await client.ask({ method: 'GET', path });
    const name = `GET ${path.replaceAll(verification.id, 'ID')}`;
    const status = 'fault' in reply ? 0 : reply.status;
    if (status >= 300 && status < 400) {
      return skip('spelling', name, `${status}: what stands in front redirects it; not followed`);
    }
    const isOk = isRefusal(reply, expected) || status === 400;
    const advice = 'fault' in reply ? undefined : 'it went past the list without a token';
    return createCheck('spelling', name, isOk, `${rejectionText(expected)} or 400`, replyText(reply), advice);
  });
}

/** A member, a collection and something below a member, where the list has them. */
function samples(verification: Verification): RowProbe[] {
  const isRefused = createRefusalTest(verification);
  const reads = rowProbes(verification).filter(
    ({ row, method, path }) => method === 'GET' && row.template !== '/' && isRefused('GET', path),
  );
  const depths = [2, 1, 3];
  const found = depths.map((depth) =>
    reads.find(
      ({ row, hasId }) => row.template.split('/').length - 1 === depth && hasId === depth > 1 && !isTree(row),
    ),
  );
  return found.filter((probe) => probe !== undefined);
}

function isTree({ template }: RowProbe['row']): boolean {
  return template.endsWith('**');
}

function spellings(path: string, ignoredPrefixes: readonly string[]): string[] {
  const [, type = ''] = path.split('/');
  const rest = path.slice(type.length + 1);
  const lastSlash = path.lastIndexOf('/');
  const first = type.charCodeAt(0).toString(16).toUpperCase();
  return [
    `/${type.toUpperCase()}${rest}`,
    `${path}/`,
    `/${path}`,
    `/%${first}${type.slice(1)}${rest}`,
    `/${type};x=1${rest}`,
    `/shopward-verify/..${path}`,
    `/shopward-verify/%2e%2e${path}`,
    `/shopward-verify\\..\\${path.slice(1)}`,
    ...(rest === ''
      ? []
      : [`/${type}/x${path}`, `${path.slice(0, lastSlash)}%2F${path.slice(lastSlash + 1)}`]),
    ...ignoredPrefixes.map((prefix) => `${prefix}${path}`),
  ];
}

/** What shopward says to a token that it does not take; a 403 of the shop's own is an answer. */
const refusals = [
  'access-token-missing',
  'access-token-invalid',
  'insufficient-scope',
  'keys-unavailable',
] as const;

/** A forged token is refused, a good one is not; asked of the first row that refuses and needs no scope. */
export async function checkTokens(verification: Verification): Promise<Check[]> {
  const { client, rejections, token } = verification;
  const isRefused = createRefusalTest(verification);
  const probe = rowProbes(verification).find(
    ({ row, method, path }) => method === 'GET' && row.scopes.length === 0 && isRefused(method, path),
  );
  if (probe === undefined) return [skip('token', 'bad token', 'the list has no GET row that could be asked')];
  const ask = (credentials: string) =>
    client.ask({ method: 'GET', path: probe.path, fields: { Authorization: `Bearer ${credentials}` } });
  const bad = checkRefusal(
    'token',
    `GET ${probe.row.template} with a bad token`,
    await ask('shopward.verify.invalid'),
    rejections['access-token-invalid'],
  );
  if (token === undefined) return [bad];
  const reply = await ask(token);
  const isTaken =
    !('fault' in reply) &&
    reply.status !== 401 &&
    refusals.every((name) => !isRefusal(reply, rejections[name]));
  const advice =
    'the token is not taken: has it expired, is it of another issuer, or does the proxy lack its key?';
  const name = `GET ${probe.row.template} with the given token`;
  return [bad, createCheck('token', name, isTaken, 'an answer of the shop', replyText(reply), advice)];
}
