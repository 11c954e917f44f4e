import { conditionTexts } from '../../access/claim-conditions.ts';
import type { PathRules } from '../../routes/path-table.ts';
import {
  type Check,
  checkRefusal,
  createCheck,
  eachAtOnce,
  isRefusal,
  type RowProbe,
  rejectionText,
  replyText,
  rowProbes,
  skip,
  type Verification,
} from './verification.ts';

/** Checks that there is an answer; without one only `checkShop` follows. */
export async function checkReach({ client, id }: Verification): Promise<Check> {
  const reply = await client.ask(`/${id}`);
  const advice = /CERT|SELF_SIGNED|VERIFY/.test(reply.fault ?? '')
    ? 'clients refuse this certificate; NODE_EXTRA_CA_CERTS=FILE names an authority of your own'
    : undefined;
  return createCheck('reach', 'GET /ID', reply.status !== 0, 'any answer', replyText(reply), advice);
}

const isOpenAdvice = 'it was not refused: the proxy has another list, or requests bypass the proxy';

/** Checks each GET row without a token. */
export function checkRows(verification: Verification): Promise<Check[]> {
  return eachAtOnce(rowProbes(verification), async (probe) => {
    if (!verification.isRefused(probe.path))
      return skip('rows', nameOf(probe), 'observe mode: it is not refused');
    const reply = await verification.client.ask(probe.path);
    return checkRefusal(
      'rows',
      nameOf(probe),
      reply,
      verification.rejections['access-token-missing'],
      isOpenAdvice,
    );
  });
}

function nameOf({ row }: RowProbe): string {
  return `GET ${row.template}`;
}

/**
 * Checks other spellings of a protected path, which some shops read as the same path. Each must be refused, by the row or as
 * malformed.
 */
export async function checkSpellings(
  verification: Verification,
  { areReadsRefused }: { readonly areReadsRefused: boolean },
): Promise<Check[]> {
  if (!areReadsRefused)
    return [skip('spelling', 'other spellings', 'not even the rows themselves are refused')];
  const { client, config, rejections } = verification;
  const expected = rejections['access-token-missing'];
  const probe = findRefusedRead(verification);
  if (probe === undefined) return [skip('spelling', 'other spellings', 'no GET row of the list is refused')];
  return eachAtOnce(spellings(probe, config.request), async (path) => {
    const reply = await client.ask(path);
    const name = `GET ${path.replaceAll(verification.id, 'ID')}`;
    const { status } = reply;
    if (status >= 300 && status < 400) {
      return skip('spelling', name, `${status}: a front redirects it; redirects are not followed`);
    }
    const isOk = isRefusal(reply, expected) || status === 400;
    const advice = status === 0 ? undefined : 'it passed the list without a token';
    return createCheck('spelling', name, isOk, `${rejectionText(expected)} or 400`, replyText(reply), advice);
  });
}

/** A row whose path has a name and an id, else any row but the root. */
function findRefusedRead(verification: Verification): RowProbe | undefined {
  const reads = rowProbes(verification).filter(
    ({ row, path }) => row.template !== '/' && verification.isRefused(path),
  );
  return reads.find(({ row }) => /^\/[^{*]+\/\{/.test(row.template)) ?? reads[0];
}

/** Other spellings of the name before the first id, and longer spellings of the path. */
function spellings({ row, path }: RowProbe, { ignoredPrefixes, lastPair }: PathRules): string[] {
  const segments = path.slice(1).split('/');
  const firstFree = row.template
    .slice(1)
    .split('/')
    .findIndex((part) => /^[{*]/.test(part));
  const index = Math.max(0, (firstFree === -1 ? segments.length : firstFree) - 1);
  const name = segments[index] ?? '';
  const withName = (text: string) => `/${segments.with(index, text).join('/')}`;
  const lastSlash = path.lastIndexOf('/');
  const all = [
    withName(name.toUpperCase()),
    withName(`%${name.charCodeAt(0).toString(16).toUpperCase()}${name.slice(1)}`),
    withName(`${name};x=1`),
    `${path}/`,
    `/${path}`,
    ...['..', '%2e%2e'].map((up) => `/shopward-verify/${up}${path}`),
    `/shopward-verify\\..\\${path.slice(1)}`,
    ...(lastPair && index < segments.length - 1 ? [withName(`${name}/x/${name}`)] : []),
    ...(lastSlash === 0 ? [] : [`${path.slice(0, lastSlash)}%2F${path.slice(lastSlash + 1)}`]),
    ...ignoredPrefixes.map((prefix) => `${prefix}${path}`),
  ];
  return all.filter((one) => one !== path);
}

/** shopward's refusals of a token. A 403 of the shop itself shows that the token was accepted. */
const refusals = [
  'access-token-missing',
  'access-token-invalid',
  'insufficient-scope',
  'not-permitted',
  'keys-unavailable',
] as const;

/** Checks on the first row without scopes that a forged token is refused and the given token is accepted. */
export async function checkTokens(verification: Verification): Promise<Check[]> {
  const { client, rejections, token, isRefused } = verification;
  const probe = rowProbes(verification).find(
    ({ row, path }) => row.scopes.length + conditionTexts(row).length === 0 && isRefused(path),
  );
  if (probe === undefined) return [skip('token', 'bad token', 'the list has no GET row that can be tested')];
  const ask = (credentials: string) => client.ask(probe.path, { Authorization: `Bearer ${credentials}` });
  const bad = checkRefusal(
    'token',
    `GET ${probe.row.template} with a bad token`,
    await ask('shopward.verify.invalid'),
    rejections['access-token-invalid'],
  );
  if (token === undefined) return [bad];
  const reply = await ask(token);
  const isTaken =
    reply.status !== 0 &&
    reply.status !== 401 &&
    refusals.every((name) => !isRefusal(reply, rejections[name]));
  const advice =
    'the token is refused: has it expired, is it from another issuer, or does the proxy not have its key?';
  const name = `GET ${probe.row.template} with the given token`;
  return [bad, createCheck('token', name, isTaken, 'an answer of the shop', replyText(reply), advice)];
}
