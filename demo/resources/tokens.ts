import { companyUsers } from '../data/companies.ts';
import { refuse } from '../http/refusals.ts';
import {
  type Answer,
  answerOne,
  isText,
  noContent,
  type ResourceCall,
  type ResourceRoute,
  textOf,
} from '../http/resource.ts';
import { isPasswordOf, subjectOf, type TokenUser } from '../tokens.ts';
import { callerOf } from './customers.ts';

export const tokenRoutes: readonly ResourceRoute[] = [
  {
    type: 'access-tokens',
    methods: {
      GET: { handle: () => ({ status: 200, data: [] }) },
      POST: { attributes: { username: isText, password: isText }, handle: signIn },
    },
  },
  {
    type: 'refresh-tokens',
    methods: {
      GET: { handle: () => ({ status: 200, data: [] }) },
      POST: { attributes: { refreshToken: isText }, handle: exchange },
      /** Always 204, whoever's token it names; and since the shop keeps no list of them, none is revoked. */
      DELETE: { handle: () => noContent },
    },
  },
  {
    type: 'company-user-access-tokens',
    methods: { POST: { attributes: { idCompanyUser: isText }, handle: actAsCompanyUser } },
  },
  { type: 'token', methods: { POST: { isForm: true, handle: answerTokenRequest } } },
];

async function signIn(call: ResourceCall) {
  const user = authenticate(call, textOf(call.attributes, 'username'), textOf(call.attributes, 'password'));
  if (user === null) refuse('loginFailed');
  const pair = await issuePair(call, user);
  const own = user.idCompanyUser === null ? {} : { idCompanyUser: user.idCompanyUser };
  return showPair('access-tokens', { ...pair, ...own });
}

async function exchange(call: ResourceCall) {
  const user = call.refreshTokens.open(textOf(call.attributes, 'refreshToken'));
  if (user === null) refuse('refreshFailed');
  return showPair('refresh-tokens', await issuePair(call, user));
}

async function actAsCompanyUser(call: ResourceCall) {
  const reference = callerOf(call).id;
  const idCompanyUser = textOf(call.attributes, 'idCompanyUser');
  const companyUser = companyUsers.find((user) => user.id === idCompanyUser);
  if (companyUser?.customer !== reference) refuse('accessTokenInvalid');
  return showPair('company-user-access-tokens', await issuePair(call, { reference, idCompanyUser }));
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

function tokenAnswer(status: number, body: object): Answer {
  const plain = { contentType: 'application/json', body: JSON.stringify(body) };
  return { status, plain, fields: { 'cache-control': 'no-store', pragma: 'no-cache' } };
}

function authenticate({ state }: ResourceCall, username = '', password = ''): TokenUser | null {
  const email = username.toLowerCase();
  const customer = state.customers.find((each) => each.email.toLowerCase() === email);
  if (customer === undefined || !isPasswordOf(password, customer.passwordHash)) return null;
  const companyUser = companyUsers.find((user) => user.customer === customer.id);
  return { reference: customer.id, idCompanyUser: companyUser?.id ?? null };
}

/** Only the access token's lifetime is given; that of the refresh token is not, as in a real shop. */
async function issuePair(call: ResourceCall, user: TokenUser) {
  const scopes = user.idCompanyUser === null ? ['customer'] : ['customer', 'company_user'];
  return {
    tokenType: 'Bearer',
    expiresIn: call.settings.accessTokenLifetimeSeconds,
    accessToken: await call.issueToken({ sub: subjectOf(user), scopes }),
    refreshToken: call.refreshTokens.seal(user),
  };
}

function showPair(type: string, attributes: object): Answer {
  return answerOne({ type, id: null, attributes }, 201);
}
