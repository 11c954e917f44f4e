import { type Check, createCheck, skip } from './check.ts';
import { checkRefusal, isRefusal, replyText } from './refusal.ts';
import { createRefusalTest, rowProbes, type Verification } from './verification.ts';

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
