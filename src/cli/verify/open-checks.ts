import { type Check, createCheck, skip } from './check.ts';
import { isRefusal, replyText } from './refusal.ts';
import { createRefusalTest, type Verification } from './verification.ts';

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
