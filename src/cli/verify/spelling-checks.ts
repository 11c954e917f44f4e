import { type Check, createCheck, skip } from './check.ts';
import { eachAtOnce } from './each.ts';
import { isRefusal, rejectionText, replyText } from './refusal.ts';
import { createRefusalTest, type RowProbe, rowProbes, type Verification } from './verification.ts';

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
