import { companyUsers } from '../data/companies.ts';
import { type Refusal, refuse } from '../http/refusals.ts';
import type { Action, Answer, ResourceCall, ResourceRoute } from '../http/resource.ts';
import * as rule from '../http/rules.ts';
import { accessTokenSeconds, isPasswordOf, subjectOf, type TokenUser } from '../tokens.ts';
import { callerOf } from './customers.ts';

const emptyCollection: Action = { handle: () => ({ status: 200, data: [] }) };
/** Always 204, for any user's token. The shop keeps no list of tokens, so it revokes none. */
const revoke: Action = { handle: () => ({ status: 204 }) };

/** Finds the user for the values of the named attributes, or of fields of a form. */
type Grant = {
  readonly needs: readonly string[];
  readonly open: (call: ResourceCall, ...values: string[]) => TokenUser | null;
};

const grants: ReadonlyMap<string, Grant> = new Map([
  ['password', { needs: ['username', 'password'], open: authenticate }],
  ['refresh_token', { needs: ['refresh_token'], open: openRefreshToken }],
]);

const signIn = issuing('access-tokens', ['username', 'password'], authenticate, 'loginFailed');
const refresh = issuing('refresh-tokens', ['refreshToken'], openRefreshToken, 'refreshFailed');
const actAs = issuing('company-user-access-tokens', ['idCompanyUser'], findColleague, 'accessTokenInvalid');

export const tokenRoutes: readonly ResourceRoute[] = [
  { type: 'access-tokens', methods: { GET: emptyCollection, POST: signIn } },
  { type: 'refresh-tokens', methods: { GET: emptyCollection, POST: refresh, DELETE: revoke } },
  { type: 'company-user-access-tokens', methods: { POST: actAs } },
  { type: 'token', methods: { POST: { isForm: true, handle: answerTokenRequest } } },
];

/** A POST that issues a pair of tokens as a resource. */
function issuing(type: string, needs: Grant['needs'], open: Grant['open'], refusal: Refusal): Action {
  const handle = async (call: ResourceCall) => {
    const values = needs.map((name) => rule.readText(call.attributes, name));
    const user = open(call, ...values) ?? refuse(refusal);
    const { idCompanyUser } = user;
    const attributes = { ...(await issuePair(call, user)), ...(idCompanyUser && { idCompanyUser }) };
    return { status: 201, data: { type, id: null, attributes } };
  };
  return { attributes: Object.fromEntries(needs.map((name) => [name, rule.text])), handle };
}

/** RFC 6749 sections 4.3 and 6, with the errors of section 5.2. */
async function answerTokenRequest(call: ResourceCall): Promise<Answer> {
  const field = (name: string) => call.form?.values.get(name) ?? '';
  const type = field('grant_type');
  const grant = grants.get(type);
  if (grant === undefined)
    return tokenAnswer(400, { error: type ? 'unsupported_grant_type' : 'invalid_request' });
  const values = grant.needs.map(field);
  if (values.includes('')) return tokenAnswer(400, { error: 'invalid_request' });
  const user = grant.open(call, ...values);
  if (user === null) return tokenAnswer(400, { error: 'invalid_grant' });
  const { accessToken, refreshToken, expiresIn, tokenType } = await issuePair(call, user);
  const tokens = { access_token: accessToken, refresh_token: refreshToken };
  return tokenAnswer(200, { token_type: tokenType, expires_in: expiresIn, ...tokens });
}

function tokenAnswer(status: number, value: object): Answer {
  const fields = { 'content-type': 'application/json', 'cache-control': 'no-store', pragma: 'no-cache' };
  return { status, fields, body: JSON.stringify(value) };
}

function authenticate({ state }: ResourceCall, username = '', password = ''): TokenUser | null {
  const email = username.toLowerCase();
  const customer = state.customers.find((each) => each.email.toLowerCase() === email);
  if (customer === undefined || !isPasswordOf(password, customer.passwordHash)) return null;
  const companyUser = companyUsers.find((user) => user.customer === customer.id);
  return { reference: customer.id, idCompanyUser: companyUser?.id ?? null };
}

function openRefreshToken({ refreshTokens }: ResourceCall, token = ''): TokenUser | null {
  return refreshTokens.open(token);
}

/** The caller as a user of a company; a caller may be a user of several. */
function findColleague(call: ResourceCall, id = ''): TokenUser | null {
  const reference = callerOf(call).id;
  const isOwn = companyUsers.some((user) => user.id === id && user.customer === reference);
  return isOwn ? { reference, idCompanyUser: id } : null;
}

/** The answer has only the access token's lifetime, as in a real shop. */
async function issuePair({ keys, refreshTokens }: ResourceCall, user: TokenUser) {
  const scopes = user.idCompanyUser === null ? ['customer'] : ['customer', 'company_user'];
  return {
    ...{ tokenType: 'Bearer', expiresIn: accessTokenSeconds, refreshToken: refreshTokens.seal(user) },
    accessToken: await keys.issue({ sub: subjectOf(user), scopes }),
  };
}
