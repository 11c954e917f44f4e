import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EchoUpstream, startEchoUpstream } from '../../harness/echo-upstream.ts';
import { parseResponse, type RawResponse } from '../../harness/raw-response.ts';
import { type ShopwardHere, startShopwardHere } from '../../harness/shopward-here.ts';
import {
  expiredPair as other,
  nextPair as own,
  testCertificate,
  testKey,
} from '../../harness/tls-fixture.ts';
import { openRecordClient, recordTypes } from '../../harness/tls-records.ts';
import { jktOf, makeProof, withProof } from '../../unit/access/dpop.ts';
import { makeSigner } from '../../unit/access/signing.ts';

// `other` has expired, which does not matter: only thumbprints are compared.
const derOf = ({ cert }: typeof own) => new X509Certificate(cert).raw;
const thumbprint = (bytes: Uint8Array, encoding: 'base64url' | 'hex' = 'base64url') =>
  createHash('sha256').update(bytes).digest(encoding);
const field = (value: string) => `Client-Cert: ${value}`;
const bytesOf = (bytes: Uint8Array) => `:${Buffer.from(bytes).toString('base64')}:`;

type ClientOptions = ConnectionOptions & { readonly localAddress?: string };

/** A client at an address of `trustedProxies`. */
const trusted: ClientOptions = { localAddress: '127.0.0.2' };
const signer = makeSigner('ES256');

let folder: string;
let upstream: EchoUpstream;
let shopward: ShopwardHere;
let bound: string;
beforeAll(async () => {
  upstream = await startEchoUpstream();
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-mtls-'));
  const files = { cert: path.join(folder, 'cert'), key: path.join(folder, 'key') };
  await Promise.all([writeFile(files.cert, testCertificate), writeFile(files.key, testKey)]);
  shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${upstream.port}`,
    rows: ['GET /bound', { match: 'GET /strict', proof: 'required' }],
    config: {
      listen: { tls: files },
      auth: { proof: 'any' },
      ...{ trustedProxies: ['127.0.0.2'], trustedFields: ['Client-Cert'] },
    },
  });
  bound = shopward.issueToken({ cnf: { 'x5t#S256': thumbprint(derOf(own)) } });
});
afterAll(async () => {
  await shopward?.stop();
  await upstream?.close();
  await rm(folder, { recursive: true, force: true });
});

const connectTo = (options: ClientOptions): TLSSocket =>
  connect({ port: shopward.port, host: '127.0.0.1', rejectUnauthorized: false, ...options });

async function open(options: ClientOptions): Promise<TLSSocket> {
  const socket = connectTo(options);
  await once(socket, 'secureConnect');
  return socket;
}

async function exchange(socket: TLSSocket, fields: readonly string[], target: string): Promise<RawResponse> {
  socket.write([`GET ${target} HTTP/1.1`, 'Host: shop.example', ...fields, '', ''].join('\r\n'));
  let received = Buffer.alloc(0);
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    received = Buffer.concat([received, chunk]);
    const parsed = parseResponse(received, 'GET', undefined);
    if (parsed !== undefined) return parsed.response;
  }
  throw new Error('closed without a response');
}

async function ask(options: ClientOptions, fields: readonly string[], target = '/bound') {
  const socket = await open(options);
  const response = await exchange(socket, fields, target);
  socket.destroy();
  return response;
}

const bearer = (token = bound) => `Authorization: Bearer ${token}`;
/** Sends as a trusted proxy whose own certificate is the token's. */
const byProxy = (...values: readonly string[]) =>
  ask({ ...trusted, ...own }, [bearer(), ...values.map(field)]);

const good = bytesOf(derOf(own));
const base64 = derOf(own).toString('base64');
const spki = new X509Certificate(own.cert).publicKey.export({ type: 'spki', format: 'der' });
/** Values of the field that a trusted proxy sends. */
const inField: readonly (readonly [what: string, reason: string, ...values: readonly string[]])[] = [
  ["a trusted proxy's own certificate", 'no-certificate'],
  ['another certificate in the field', 'certificate', bytesOf(derOf(other))],
  ['the certificate and an octet', 'certificate', bytesOf(Buffer.concat([derOf(own), Buffer.of(0)]))],
  ['a part of the certificate', 'certificate', bytesOf(derOf(own).subarray(1))],
  ['the key of the certificate', 'certificate', bytesOf(spki)],
  ['the field twice', 'certificate-form', good, good],
  ['two fields, the first one good', 'certificate-form', good, bytesOf(derOf(other))],
  ['two certificates in one field', 'certificate-form', `${good}, ${good}`],
  ['an empty field', 'certificate-form', ''],
  ['an empty sequence', 'certificate-form', '::'],
  ['no colons', 'certificate-form', base64],
  ['one colon', 'certificate-form', `:${base64}`],
  ['a parameter', 'certificate-form', `${good};a=1`],
  ['a text', 'certificate-form', `"${base64}"`],
  ['base64url', 'certificate-form', `:${derOf(own).toString('base64url')}_-:`],
  ['a space inside', 'certificate-form', `: ${base64}:`],
  ['PEM in percent signs, as nginx writes it', 'certificate-form', encodeURIComponent(own.cert)],
  ['the thumbprint', 'certificate-form', thumbprint(derOf(own))],
];
type Refused = readonly [what: string, reason: string, ask: () => Promise<RawResponse>];
const refused: readonly Refused[] = [
  ['no certificate', 'no-certificate', () => ask({}, [bearer()])],
  ['another certificate', 'certificate', () => ask(other, [bearer()])],
  [
    'another certificate by TLS 1.2',
    'certificate',
    () => ask({ ...other, maxVersion: 'TLSv1.2' }, [bearer()]),
  ],
  ['the scheme DPoP', 'unbound', () => ask(own, [`Authorization: DPoP ${bound}`])],
  ['the field of a peer that is not trusted', 'no-certificate', () => ask({}, [bearer(), field(good)])],
  [
    'the field of a peer that is not trusted, beside another certificate',
    'certificate',
    () => ask(other, [bearer(), field(good)]),
  ],
  [
    'the field in a spelling that backends fold',
    'no-certificate',
    () => ask(trusted, [bearer(), `Client_Cert: ${good}`]),
  ],
  [
    'the chain instead of the certificate',
    'no-certificate',
    () => ask(trusted, [bearer(), `Client-Cert-Chain: ${good}`]),
  ],
  ...inField.map(([what, reason, ...values]) => [what, reason, () => byProxy(...values)] as const),
  [
    'a plain token with a certificate where a proof is required',
    'unbound',
    () => ask(own, [bearer(shopward.issueToken())], '/strict'),
  ],
];

describe('J20: a certificate-bound token', () => {
  it.each(refused)('401 for %s', async (_, reason, send) => {
    const { length } = shopward.log();
    const forwarded = upstream.requestLines().length;
    const response = await send();
    expect([response.status, JSON.parse(response.body.toString()).errors[0].code]).toEqual([
      401,
      'proof-invalid',
    ]);
    expect(response.field('www-authenticate')).toContain('error="invalid_token"');
    const line = await shopward.waitForLog((one) => one.rejection === 'proof-invalid', length);
    expect(line.reason).toBe(reason);
    expect(upstream.requestLines()).toHaveLength(forwarded);
    expect(shopward.output()).not.toContain(thumbprint(derOf(own)));
  });

  it('400 when Connection names the field Client-Cert', async () => {
    const fields = [bearer(), field(good), 'Connection: Client-Cert'];
    expect((await ask(trusted, fields)).status).toBe(400);
  });

  const x5t = () => ({ 'x5t#S256': thumbprint(derOf(own)) });
  it.each<[string, () => object]>([
    ['a certificate and a key', () => ({ ...x5t(), jkt: 'x'.repeat(43) })],
    ['a certificate and something unknown', () => ({ ...x5t(), kid: 'k' })],
    ['a certificate in hexadecimal', () => ({ 'x5t#S256': thumbprint(derOf(own), 'hex') })],
    ['a certificate by SHA-1', () => ({ x5t: createHash('sha1').update(derOf(own)).digest('base64url') })],
    ['a list with the certificate', () => ({ 'x5t#S256': [thumbprint(derOf(own))] })],
  ])('401 for a token that is bound to %s', async (_, cnf) => {
    const response = await ask(own, [bearer(shopward.issueToken({ cnf: cnf() }))]);
    expect([response.status, JSON.parse(response.body.toString()).errors[0].code]).toEqual([401, '001']);
  });

  it('401 for a key-bound token with a certificate instead of a proof', async () => {
    const token = shopward.issueToken({ cnf: await jktOf(signer) });
    const response = await ask(own, [bearer(token), field(good)]);
    expect(response.status).toBe(401);
    expect(response.field('www-authenticate')).toMatch(/^DPoP .*error="invalid_token"/);
  });

  it.each<[string, () => Promise<RawResponse>]>([
    ['the certificate', () => ask(own, [bearer()])],
    ['the certificate by TLS 1.2', () => ask({ ...own, maxVersion: 'TLSv1.2' }, [bearer()])],
    ['the field of a trusted proxy', () => byProxy(good)],
    ['the certificate where a proof is required', () => ask(own, [bearer()], '/strict')],
    ['a plain token with another certificate', () => ask(other, [bearer(shopward.issueToken())])],
    ['a plain token without a certificate', () => ask({}, [bearer(shopward.issueToken())])],
    [
      'a key-bound token with its proof and another certificate',
      async () => {
        const token = shopward.issueToken({ cnf: await jktOf(signer) });
        const proof = makeProof(signer, token, { claims: { htu: 'https://shop.example/bound' } });
        return ask(other, withProof(token, proof));
      },
    ],
  ])('passes: %s', async (_, send) => {
    expect((await send()).status).toBe(200);
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    '%s: a resumed session has the certificate of its first handshake',
    async (maxVersion) => {
      const begin = async (options: ClientOptions) => {
        const socket = connectTo({ ...options, maxVersion });
        // In TLS 1.2 the session comes before the handshake has ended.
        const session = once(socket, 'session');
        await exchange(socket, [], '/open');
        const [ticket] = await session;
        socket.destroy();
        return ticket as Buffer;
      };
      const resume = async (options: ClientOptions) => {
        const socket = await open({ ...options, maxVersion });
        const { status } = await exchange(socket, [bearer()], '/bound');
        const isReused = socket.isSessionReused();
        socket.destroy();
        return [isReused, status];
      };
      expect(await resume({ ...own, session: await begin(own) })).toEqual([true, 200]);
      // The certificate of the second handshake is not sent.
      expect(await resume({ ...own, session: await begin(other) })).toEqual([true, 401]);
      expect(await resume({ ...own, session: await begin({}) })).toEqual([true, 401]);
    },
  );

  it('a client that asks for another handshake is cut', async () => {
    const client = await openRecordClient(shopward.port, 'TLSv1.2');
    const hello = client.record(recordTypes.handshake, Buffer.of(1, 0, 0, 0));
    client.raw.resume().write(hello);
    await once(client.raw, 'close');
    const socket = await open({ maxVersion: 'TLSv1.2' });
    expect((await exchange(socket, [bearer()], '/bound')).status).toBe(401);
    const ended = new Promise((resolve) => socket.once('error', () => {}).once('close', resolve));
    socket.renegotiate({ rejectUnauthorized: false, ...own }, () => {});
    await ended;
  });

  it('the metadata lists certificate-bound tokens as supported, and DPoP as not required', async () => {
    const { body } = await ask({}, [], '/.well-known/oauth-protected-resource');
    expect(JSON.parse(body.toString())).toMatchObject({
      tls_client_certificate_bound_access_tokens: true,
      dpop_bound_access_tokens_required: false,
    });
  });

  it.each<[string, RegExp, string, () => readonly string[]]>([
    ['no token', /^Bearer realm=[^,]*, res.*, DPoP realm=/, '/bound', () => []],
    ['no token where a proof is required', /^Bearer realm=[^,]*, res.*, DPoP realm=/, '/strict', () => []],
    [
      'an unbound token where a proof is required',
      /^Bearer .*error="invalid_token", .*, DPoP realm=/,
      '/strict',
      () => [bearer(shopward.issueToken())],
    ],
  ])('the challenge to %s names Bearer and DPoP', async (_, challenges, target, fields) => {
    expect((await ask({}, fields(), target)).field('www-authenticate')).toMatch(challenges);
  });
});
