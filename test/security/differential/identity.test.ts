import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exchangeRaw } from '../../harness/raw-client.ts';
import type { RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { type Backend, backends } from './identity-backends/backends.ts';

/** Backends read only verified identity fields, whatever fields a client sends. */
const forward = { subject: 'X-Auth-Subject', scopes: 'X-Auth-Scopes', issuer: 'X-Auth-Issuer' };

/** Spellings that some backend reads as `X-Auth-Subject`. */
const spellings = [
  ...['X-Auth-Subject', 'x-auth-subject', 'X-AUTH-SUBJECT', 'x-AuTh-SuBjEcT'],
  ...['X_Auth_Subject', 'X_AUTH-Subject', 'X-Auth_Subject', 'x_auth_subject'],
  ...[
    'X.Auth.Subject',
    'X-Auth.Subject',
    'X+Auth+Subject',
    'X~Auth~Subject',
    "X'Auth'Subject",
    'X!Auth!Subject',
  ],
];
const others = ['X-Auth-Scopes', 'x_auth_scopes', 'X-Auth-Issuer', 'X_Auth.Issuer'];

/** Ways to send a field, as field lines. */
const ways: Readonly<Record<string, (name: string) => string>> = {
  once: (name) => `${name}: evil\r\n`,
  twice: (name) => `${name}: evil\r\n${name}: evil\r\n`,
  'beside another spelling': (name) => `${name}: evil\r\nX_AUTH_subject: evil\r\nX-auth-Subject: evil\r\n`,
  'and named in Connection': (name) => `Connection: ${name}, x-auth-subject\r\n${name}: evil\r\n`,
  'with an empty value first': (name) => `${name}:\r\n${name}: evil\r\n`,
  'with odd white space': (name) => `${name}:\t evil \t\r\n`,
};

describe.each(Object.entries(backends))('%s', (_name, start) => {
  let backend: Backend;
  let shopward: RunningShopward;

  beforeAll(async () => {
    if (start === undefined) return;
    backend = await start();
    shopward = await startShopwardHere({
      upstream: `http://127.0.0.1:${backend.port}`,
      config: { auth: { forward, forwardAuthorization: false } },
      rows: ['ANY /secret', { match: 'GET /observed', observe: true }],
    });
  }, 300_000);
  afterAll(async () => {
    await shopward?.stop();
    await backend?.close();
  });

  const seen = async (bytes: string) => {
    const { status, body } = await exchangeRaw(shopward.port, bytes);
    expect(status, body.toString()).toBe(200);
    const fields = JSON.parse(body.toString()) as Record<string, string>;
    return Object.fromEntries(Object.entries(fields).filter(([name]) => /AUTH|EVIL/.test(name)));
  };
  const request = (line: string, fields: string, body = '') =>
    `${line} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n${fields}\r\n${body}`;

  it.skipIf(start === undefined).each(Object.entries(ways))(
    'gets no identity from fields sent %s',
    async (_, way) => {
      const bearer = `Authorization: Bearer ${shopward.issueToken({ sub: 'DE--21', iss: undefined })}\r\n`;
      for (const name of [...spellings, ...others]) {
        const fields = way(name);
        expect(await seen(request('GET /open', fields)), name).toEqual({});
        expect(await seen(request('GET /observed', fields)), name).toEqual({});
        expect(await seen(request('GET /secret', fields + bearer)), name).toEqual({
          HTTP_X_AUTH_SUBJECT: 'DE--21',
        });
      }
    },
  );

  it.skipIf(start === undefined)('gets no identity from trailers, announced or not', async () => {
    for (const name of spellings) {
      const head = 'Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n';
      const body = `1\r\nx\r\n0\r\n${name}: evil\r\n\r\n`;
      for (const announced of ['', `Trailer: ${name}\r\n`])
        expect(await seen(request('POST /open', head + announced, body)), name).toEqual({});
    }
  });

  it.skipIf(start === undefined)(
    'gets one encoded value for each claim with line breaks, commas or quotes',
    async () => {
      const subject = 'a\r\nX-Auth-Scopes: admin, "ü"';
      const scopes = ['customer', 'a admin', 'b,admin', 'ü'];
      const token = shopward.issueToken({ sub: subject, scopes, iss: 'https://a.example/é' });
      const fields = await seen(request('GET /secret', `Authorization: bearer  ${token}\r\n`));
      expect(fields).toEqual({
        HTTP_X_AUTH_SUBJECT: 'a%0D%0AX-Auth-Scopes:%20admin%2C%20%22%C3%BC%22',
        HTTP_X_AUTH_SCOPES: 'customer a%20admin b%2Cadmin %C3%BC',
        HTTP_X_AUTH_ISSUER: 'https://a.example/%C3%A9',
      });
      expect(decodeURIComponent(fields.HTTP_X_AUTH_SUBJECT ?? '')).toBe(subject);
    },
  );

  it.skipIf(start === undefined)("gets the client's Authorization on an open path", async () => {
    const basic = 'Authorization: Basic c2hvcDpzZWNyZXQ=\r\n';
    expect(await seen(request('GET /open', basic))).toEqual({ HTTP_AUTHORIZATION: 'Basic c2hvcDpzZWNyZXQ=' });
  });
});
