import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { runToken } from '../../../src/cli/token.ts';
import { request, useAttackStage } from '../../harness/attack-stage.ts';
import { jktOf, makeProof, type ProofParts, withProof } from '../../unit/access/dpop.ts';
import {
  encode,
  makeHmacToken,
  makeSigner,
  publicJwk,
  type Signer,
  signSegments,
} from '../../unit/access/signing.ts';
import { runCommand } from '../../unit/cli/command-run.ts';

const signer = makeSigner('ES256');
const other = makeSigner('ES256');
const metadata = 'resource_metadata="http://shop.example/.well-known/oauth-protected-resource"';
const algs = 'algs="ES256 ES384 ES512 EdDSA Ed25519 PS256 RS256"';
const challenge = (error?: string) =>
  `DPoP realm="Access to shop API", ${error ? `error="${error}", ` : ''}${metadata}, ${algs}`;

const stage = useAttackStage({
  rows: [
    'ANY /bound',
    'GET /bound/{id}',
    { match: 'GET /strict', proof: 'required' },
    { match: 'GET /tried', proof: 'required', observe: true },
    { match: 'GET /saved', tokenIn: ['header', 'cookie:sid', 'query:token'] },
  ],
  config: { auth: { proof: 'dpop' }, trustedProxies: ['127.0.0.2'], request: { profile: 'plain' } },
});
let cnf: object;
let bound: string;
beforeAll(async () => {
  cnf = await jktOf(signer);
  bound = stage.shopward.issueToken({ cnf });
});

const proofOf = (parts?: ProofParts) => makeProof(signer, bound, parts);
const send = (fields: readonly string[], line = 'GET /bound') => request(line, fields);
const withClaims = (claims: object, line?: string) => send(withProof(bound, proofOf({ claims })), line);
const withHeader = (header: object) => send(withProof(bound, proofOf({ header })));
const withKey = (members: object) => withHeader({ jwk: Object.assign(publicJwk(signer), members) });
const proven = (by: Signer, parts?: ProofParts) => send(withProof(bound, makeProof(by, bound, parts)));
/** A proof whose claims, as JSON text, are changed before they are signed. */
const withText = (change: (claims: string) => string) => {
  const header = encode({ typ: 'dpop+jwt', alg: 'ES256', jwk: publicJwk(signer) });
  const claims = Buffer.from(proofOf().split('.')[1] ?? '', 'base64url').toString();
  return send(withProof(bound, signSegments(signer, header, encode(change(claims)))));
};
const required = (line: string) => send([`Authorization: Bearer ${stage.shopward.issueToken()}`], line);
const seconds = (offset: number) => ({ iat: Math.floor(Date.now() / 1000) + offset });
const url = (htu: unknown) => withClaims({ htu });
const rsa = makeSigner('RS256');
const jktOfMembers = ({ e, kty, n }: { e?: unknown; kty?: unknown; n?: unknown }) =>
  createHash('sha256').update(JSON.stringify({ e, kty, n })).digest('base64url');
/** RFC 8017 section 9.2: with the exponent 1, the padded digest is its own signature, so anyone can sign. */
const signAsAnyone = (proof: string) => {
  const signed = proof.slice(0, proof.lastIndexOf('.'));
  const digest = createHash('sha256').update(signed).digest('hex');
  const end = `003031300d060960864801650304020105000420${digest}`;
  const padded = `0001${'ff'.repeat(254 - end.length / 2)}${end}`;
  return `${signed}.${Buffer.from(padded, 'hex').toString('base64url')}`;
};

/** By the reason in the log: each row has one fault in an otherwise valid request. */
const refused: Readonly<Record<string, Readonly<Record<string, () => string>>>> = {
  bearer: {
    'a bound token as Bearer': () => send([`Authorization: Bearer ${bound}`, `DPoP: ${proofOf()}`]),
    'a bound token as Bearer, no proof': () => send([`Authorization: Bearer ${bound}`]),
    'a bound token in a cookie': () => send([`Cookie: sid=${bound}`, `DPoP: ${proofOf()}`], 'GET /saved'),
    'a bound token in the query': () => send([`DPoP: ${proofOf()}`], `GET /saved?token=${bound}`),
  },
  unbound: {
    'a plain token with a proof': () => {
      const plain = stage.shopward.issueToken();
      return send(withProof(plain, makeProof(signer, plain)));
    },
    'a plain token where a proof is required': () => required('GET /strict'),
  },
  'no-proof': {
    'no proof': () => send([`Authorization: DPoP ${bound}`]),
    'a proof that Connection removes': () =>
      send([...withProof(bound, proofOf()), 'Connection: close, DPoP']),
  },
  'proof-repeated': { 'two proofs': () => send([...withProof(bound, proofOf()), `dpop: ${proofOf()}`]) },
  'proof-form': {
    'an empty proof': () => send(withProof(bound, '')),
    'two proofs in one field': () => send(withProof(bound, `${proofOf()}, ${proofOf()}`)),
    'no type': () => withHeader({ typ: undefined }),
    'an access token as its proof': () => send(withProof(bound, bound)),
    'a type in capitals': () => withHeader({ typ: 'DPOP+JWT' }),
    'alg none, no signature': () => {
      const [, payload] = proofOf().split('.');
      const header = encode({ typ: 'dpop+jwt', alg: 'none', jwk: publicJwk(signer) });
      return send(withProof(bound, `${header}.${payload}.`));
    },
    'no key': () => withHeader({ jwk: undefined }),
    'a kid instead of a key': () => withHeader({ jwk: undefined, kid: stage.shopward.signer.kid }),
    'a URL instead of a key': () => withHeader({ jwk: undefined, jku: 'http://127.0.0.1:1/' }),
    'a private key': () => withHeader({ jwk: signer.privateKey.export({ format: 'jwk' }) }),
    ...Object.fromEntries(
      ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'].map((member) => [
        `a key with ${member}`,
        () => withKey({ [member]: 'AQAB' }),
      ]),
    ),
    'a symmetric key': () => withHeader({ jwk: { kty: 'oct', k: 'AAAA' } }),
    'a key type of Object.prototype': () => withKey({ kty: '__proto__' }),
    'a key type without a text form': () => withKey({ kty: { toString: 1 } }),
    'an RSA key for which anyone can sign': () => {
      const jwk = { ...publicJwk(rsa), e: 'AQ' };
      const token = stage.shopward.issueToken({ cnf: { jkt: jktOfMembers(jwk) } });
      return send(withProof(token, signAsAnyone(makeProof(rsa, token, { header: { jwk } }))));
    },
    'a coordinate that is a list': () => withKey({ x: ['x'] }),
    'a critical extension': () => withHeader({ crit: ['exp'], exp: 9e9 }),
    'the header b64': () => withHeader({ b64: false }),
    'no jti': () => withClaims({ jti: undefined }),
    'an empty jti': () => withClaims({ jti: '' }),
    'jti as a number': () => withClaims({ jti: 1 }),
    'a long jti': () => withClaims({ jti: 'x'.repeat(257) }),
    'a proof above 8 KiB': () => withClaims({ more: 'x'.repeat(8192) }),
    'claims that are a list': () => withText(() => '[]'),
  },
  'proof-algorithm': {
    'alg none': () => withHeader({ alg: 'none' }),
    'HS256 with the public key as its secret': () => {
      const claims = JSON.parse(Buffer.from(proofOf().split('.')[1] ?? '', 'base64url').toString());
      const key = JSON.stringify(publicJwk(signer));
      return send(
        withProof(
          bound,
          makeHmacToken(key, claims, { typ: 'dpop+jwt', alg: 'HS256', jwk: publicJwk(signer) }),
        ),
      );
    },
    'a list of algorithms': () => withHeader({ alg: ['ES256'] }),
  },
  'proof-key': {
    'a proof by another key': () => proven(other),
    'a proof by a key of another kind': () => proven(rsa),
  },
  'proof-signature': {
    'the algorithm of another kind of key': () => withHeader({ alg: 'RS256' }),
    'the right key, signed by another': () => proven(other, { header: { jwk: publicJwk(signer) } }),
    'the payload of another proof': () => {
      const [header, , signature] = proofOf().split('.');
      return send(withProof(bound, `${header}.${proofOf().split('.')[1]}.${signature}`));
    },
  },
  'proof-method': {
    'no htm': () => withClaims({ htm: undefined }),
    'htm of another method': () => withClaims({ htm: 'POST' }),
    'htm in lower case': () => withClaims({ htm: 'get' }),
    'htm GET for HEAD': () => withClaims({ htm: 'GET' }, 'HEAD /bound'),
    'htm HEAD for GET': () => withClaims({ htm: 'HEAD' }),
    'htm DELETE for a POST whose form asks for DELETE': () =>
      request(
        'POST /bound',
        [
          ...withProof(bound, proofOf({ claims: { htm: 'DELETE' } })),
          ...['Content-Type: application/x-www-form-urlencoded', 'Content-Length: 14'],
        ],
        '_method=DELETE',
      ),
    'htm twice, the last one wrong': () => withText((claims) => claims.replace(/}$/, ',"htm":"POST"}')),
  },
  'proof-url': {
    'no htu': () => url(undefined),
    'htu as a list': () => url(['http://shop.example/bound']),
    'htu as a path': () => url('/bound'),
    'another path': () => url('http://shop.example/other'),
    'a path in capitals': () => url('http://shop.example/Bound'),
    'a trailing slash': () => url('http://shop.example/bound/'),
    'a doubled slash': () => url('http://shop.example//bound'),
    'dot segments': () => url('http://shop.example/x/../bound'),
    'a backslash': () => url('http://shop.example\\bound'),
    'a tab': () => url('http://shop.example/bo\tund'),
    'spaces around the URL': () => url(' http://shop.example/bound '),
    'another host': () => url('http://evil.example/bound'),
    'the right host as a user name': () => url('http://shop.example@evil.example/bound'),
    'another host as a user name': () => url('http://evil.example@shop.example/bound'),
    'a dot after the host': () => url('http://shop.example./bound'),
    'another port': () => url('http://shop.example:8080/bound'),
    'another scheme': () => url('https://shop.example/bound'),
    'a percent-encoded slash': () => withClaims({ htu: 'http://shop.example/bound/a%2Fb' }, 'GET /bound/a'),
    'a reserved octet escaped': () =>
      withClaims({ htu: 'http://shop.example/bound/a%3Ab' }, 'GET /bound/a:b'),
    'an escape within an escape': () => url('http://shop.example/%2562ound'),
    'a broken escape': () => url('http://shop.example/bound%'),
    'a host that only a trusted proxy may name': () =>
      send([
        ...withProof(bound, proofOf({ claims: { htu: 'https://front.example/bound' } })),
        ...['X-Forwarded-Host: front.example', 'X-Forwarded-Proto: https'],
      ]),
  },
  'proof-token': {
    'no ath': () => withClaims({ ath: undefined }),
    'ath of another token': () =>
      send(withProof(bound, makeProof(signer, stage.shopward.issueToken({ cnf, n: 1 })))),
    'ath in hexadecimal': () => withClaims({ ath: createHash('sha256').update(bound).digest('hex') }),
  },
  'proof-time': {
    'no iat': () => withClaims({ iat: undefined }),
    'iat as text': () => withClaims({ iat: String(seconds(0).iat) }),
    'an infinite iat': () => withText((claims) => claims.replace(/"iat":\d+/, '"iat":1e999')),
    'a proof 70 s old': () => withClaims(seconds(-70)),
    'a proof 20 s in the future': () => withClaims(seconds(20)),
  },
};
const ofBinding = new Set(['bearer', 'unbound', 'proof-key']);

describe('J19: proof of possession', () => {
  it.each(
    Object.entries(refused).flatMap(([reason, rows]) =>
      Object.entries(rows).map(([what, bytes]) => [what, reason, bytes] as const),
    ),
  )('401 for %s', async (_, reason, bytes) => {
    const { length } = stage.shopward.log();
    const response = await stage.refuses(bytes(), 401, 'proof-invalid');
    expect(response.field('www-authenticate')).toBe(
      challenge(ofBinding.has(reason) ? 'invalid_token' : 'invalid_dpop_proof'),
    );
    const line = await stage.shopward.waitForLog((one) => one.rejection === 'proof-invalid', length);
    expect(line.reason).toBe(reason);
  });

  it.each<[string, () => string]>([
    ['a token that is not bound', () => send([`Authorization: Bearer ${stage.shopward.issueToken()}`])],
    ['ES256', () => send(withProof(bound, proofOf()))],
    ['HEAD', () => withClaims({ htm: 'HEAD' }, 'HEAD /bound')],
    ['any case of the scheme', () => send([`Authorization: dPoP ${bound}`, `DPoP: ${proofOf()}`])],
    ['a required proof', () => withClaims({ htu: 'http://shop.example/strict' }, 'GET /strict')],
    ['scheme and host in capitals, and the usual port', () => url('HTTP://SHOP.example:80/bound')],
    ['unreserved octets escaped', () => url('http://shop.example/%62ound')],
    [
      'another spelling of the same path',
      () => withClaims({ htu: 'http://shop.example/bound/%c3%a9' }, 'GET /bound/%C3%A9'),
    ],
    ['a query on either side', () => withClaims({ htu: 'http://shop.example/bound?b=2' }, 'GET /bound?a=1')],
    ['an age within the window', () => withClaims(seconds(-55))],
    ['a proof 3 s in the future', () => withClaims(seconds(3))],
    [
      'further members of the key',
      () =>
        send(
          withProof(bound, proofOf({ header: { jwk: { ...publicJwk(signer), use: 'enc', key_ops: [] } } })),
        ),
    ],
  ])('passes: %s', async (_, bytes) => {
    const { fields } = await stage.passes(bytes());
    const [authorization = ''] = fields('authorization');
    expect(authorization).toMatch(/^(?:DPoP|Bearer) ey/);
    expect(fields('dpop')).toHaveLength(authorization.startsWith('DPoP') ? 1 : 0);
  });

  it.each(['PS256', 'RS256', 'ES384', 'EdDSA'])('passes: %s', async (alg) => {
    const own = makeSigner(alg);
    const token = stage.shopward.issueToken({ cnf: await jktOf(own) });
    await stage.passes(send(withProof(token, makeProof(own, token))));
  });

  it('401 for the jti of an earlier proof by the same key, also with another method', async () => {
    const proof = proofOf({ claims: { jti: 'once' } });
    await stage.passes(send(withProof(bound, proof)));
    await stage.refuses(send(withProof(bound, proof)), 401, 'proof-invalid');
    await stage.refuses(withClaims({ jti: 'once', htm: 'HEAD' }, 'HEAD /bound'), 401, 'proof-invalid');
    // Another client may have the same jti.
    const token = stage.shopward.issueToken({ cnf: await jktOf(other) });
    await stage.passes(send(withProof(token, makeProof(other, token, { claims: { jti: 'once' } }))));
  });

  it('one of a hundred requests with the same proof passes', async () => {
    const bytes = withClaims({});
    const connections = await Promise.all(Array.from({ length: 100 }, () => stage.send(bytes)));
    const responses = await Promise.all(connections.map((one) => one.readResponse()));
    for (const one of connections) one.close();
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(responses.filter(({ status }) => status === 401)).toHaveLength(99);
  });

  it.each<[string, unknown]>([
    ['a certificate', { 'x5t#S256': 'x'.repeat(43) }],
    ['a key and something unknown', { jkt: 'x'.repeat(43), kid: 'k' }],
    ['a short thumbprint', { jkt: 'x' }],
    ['a thumbprint that is a list', { jkt: ['x'.repeat(43)] }],
    ['nothing', {}],
    ['a text', 'x'],
  ])('401 for a token that is bound to %s', async (_, confirmation) => {
    const token = stage.shopward.issueToken({ cnf: confirmation });
    const response = await stage.refuses(send(withProof(token, makeProof(signer, token))), 401, '001');
    expect(response.field('www-authenticate')).toBe(challenge('invalid_token'));
  });

  it('the challenge names Bearer and DPoP, or DPoP alone where the row requires a proof', async () => {
    const bare = `Bearer realm="Access to shop API", ${metadata}, DPoP realm="Access to shop API", ${algs}`;
    const either = await stage.refuses(send([]), 401, '002');
    expect(either.field('www-authenticate')).toBe(bare);
    const only = await stage.refuses(send([], 'GET /strict'), 401, '002');
    expect(only.field('www-authenticate')).toBe(challenge());
  });

  it('the metadata lists the algorithms, and says that bound tokens are not required', async () => {
    const metadataUrl = `${stage.shopward.url}/.well-known/oauth-protected-resource`;
    expect(await (await fetch(metadataUrl)).json()).toMatchObject({
      dpop_signing_alg_values_supported: expect.arrayContaining(['ES256', 'EdDSA']),
      dpop_bound_access_tokens_required: false,
    });
  });

  it('`shopward token` accepts a bound token, and refuses a plain one where the row requires a proof', async () => {
    const inspect = async (token: string) => {
      const options = { config: stage.shopward.configFile, json: true, path: 'GET /strict' };
      const { out } = await runCommand((io) => runToken(token, options, io));
      const { accepted, reason, facts } = JSON.parse(out.join('\n'));
      return [accepted, reason, facts.proof];
    };
    expect(await inspect(bound)).toEqual([
      true,
      undefined,
      'bound to a key: each request needs a DPoP proof made with it',
    ]);
    expect(await inspect(stage.shopward.issueToken())).toEqual([
      false,
      'unbound',
      'not bound to a key (cnf), which the row requires',
    ]);
  });

  it('an observing row logs the missing proof and lets the request pass', async () => {
    await stage.passes(send([`Authorization: Bearer ${stage.shopward.issueToken()}`], 'GET /tried'));
    await stage.shopward.waitForLog((one) => one.observed === 'proof-invalid' && one.reason === 'unbound');
  });
});
