import { companyUsers } from '../data/companies.ts';
import { refuse } from '../http/refusals.ts';
import {
  type Action,
  type Answer,
  type AttributeRules,
  answerOne,
  isText,
  noContent,
  type ResourceCall,
  type ResourceRoute,
  textOf,
} from '../http/resource.ts';
import { isPasswordOf, subjectOf, type TokenUser } from '../tokens.ts';
import { callerOf } from './customers.ts';

const emptyCollection: Action = { handle: () => ({ status: 200, data: [] }) };
/** Always 204, whoever's token it names; and since the shop keeps no list of them, none is revoked. */
const revoke: Action = { handle: () => noContent };

const signIn = issuing('access-tokens', { username: isText, password: isText }, (call, attributes) => {
  return authenticate(call, attributes.username, attributes.password) ?? refuse('loginFailed');
});
const refresh = issuing('refresh-tokens', { refreshToken: isText }, (call, { refreshToken }) => {
  return call.refreshTokens.open(String(refreshToken)) ?? refuse('refreshFailed');
});
const actAs = issuing('company-user-access-tokens', { idCompanyUser: isText }, (call, attributes) => {
  const reference = callerOf(call).id;
  const companyUser = companyUsers.find((user) => user.id === attributes.idCompanyUser);
  if (companyUser?.customer !== reference) refuse('accessTokenInvalid');
  return { reference, idCompanyUser: companyUser.id };
});

export const tokenRoutes: readonly ResourceRoute[] = [
  { type: 'access-tokens', methods: { GET: emptyCollection, POST: signIn } },
  { type: 'refresh-tokens', methods: { GET: emptyCollection, POST: refresh, DELETE: revoke } },
  { type: 'company-user-access-tokens', methods: { POST: actAs } },
  { type: 'token', methods: { POST: { isForm: true, handle: answerTokenRequest } } },
];

/** POST of a resource that is a pair of tokens for whomever its attributes speak for. */
function issuing(
  type: string,
  rules: AttributeRules,
  open: (call: ResourceCall, attributes: Readonly<Record<string, string>>) => TokenUser,
): Action {
  const handle = async (call: ResourceCall) => {
    const texts = Object.keys(rules).map((name) => [name, textOf(call.attributes, name)]);
    const user = open(call, Object.fromEntries(texts));
    const { idCompanyUser } = user;
    const attributes = { ...(await issuePair(call, user)), ...(idCompanyUser && { idCompanyUser }) };
    return answerOne({ type, id: null, attributes }, 201);
  };
  return { attributes: rules, handle };
}

type Grant = {
  readonly needs: readonly string[];
  readonly open: (call: ResourceCall, ...values: string[]) => TokenUser | null;
};

const grants: ReadonlyMap<string, Grant> = new Map([
  ['password', { needs: ['username', 'password'], open: authenticate }],
  ['refresh_token', { needs: ['refresh_token'], open: (call, token = '') => call.refreshTokens.open(token) }],
]);

/** RFC 6749, section 4.3 and 6, with the errors of section 5.2. */
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

/** Only the access token's lifetime is given; that of the refresh token is not, as in a real shop. */
async function issuePair({ keys, refreshTokens, settings }: ResourceCall, user: TokenUser) {
  const scopes = user.idCompanyUser === null ? ['customer'] : ['customer', 'company_user'];
  const expiresIn = settings.accessTokenLifetimeSeconds;
  return {
    ...{ tokenType: 'Bearer', expiresIn, refreshToken: refreshTokens.seal(user) },
    accessToken: await keys.issue(expiresIn, { sub: subjectOf(user), scopes }),
  };
}
