import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { committedSeed } from '../fuzz/fuzz-target.ts';
import { compareReadings } from './token-readers/forwarding-of.ts';
import { readers } from './token-readers/readers.ts';
import { isSameToken } from './token-readers/same-token.ts';
import { tokenRequests, tokens } from './token-readers/token-requests.ts';
import type { TokenReader, WireRequest } from './token-readers/wire-request.ts';

const runs = Number(process.env.DIFFERENTIAL_RUNS ?? 2000);
const seed = committedSeed();

const base = { method: 'POST', query: '', contentEncoding: '' };
const form = (text: string): WireRequest => ({
  ...base,
  contentType: 'application/x-www-form-urlencoded',
  body: Buffer.from(text).toString('base64'),
});
const json = (text: string): WireRequest => ({ ...form(text), contentType: 'application/json' });

/** Requests in which only some readers find the token. They show that the test would notice such an attack. */
const quirks: Readonly<Record<string, readonly ((token: string) => WireRequest)[]>> = {
  Node: [
    (token) => form(`data[attributes][refreshToken]=${token}`),
    (token) => json(`{"REFRESH_TOKEN":"${token}"}`),
    (token) => form(`refresh%u005ftoken=${token}`),
  ],
  PHP: [
    (token) => form(`refresh[token=${token}`),
    (token) => form(`refresh.token=${token}`),
    (token) => ({ ...form(`refresh_token=${token}`), contentEncoding: 'x' }),
  ],
  Python: [
    (token) => form(`a=b;refresh_token=${token}`),
    (token) => ({
      ...json(''),
      body: Buffer.from(`{"refreshToken":"${token}"}`, 'utf16le').toString('base64'),
    }),
  ],
  Perl: [
    (token) => form(`refresh%u005ftoken=${token}`),
    (token) => form(`a=b;refresh_token=${token}`),
    (token) => ({ ...form(''), query: `refresh_token=${token}` }),
  ],
  Tomcat: [(token) => ({ ...form(''), query: `refresh_token=${token}` })],
  Ruby: [(token) => json(`/* */{"refreshToken":"${token}"}`)],
  Go: [(token) => json(`{"refreshTo\u212aen":"${token}"}`)],
};

it.each(['multipart/form-data', 'multipart/form-data; boundary=b'])('forwards no %s', async (contentType) => {
  const names = ['name="refresh_token"', 'name="=?utf-8?Q?refresh=5Ftoken?="', "name*=UTF-8''refresh_token"];
  const parts = names.map(
    (name) => `--b\r\nContent-Disposition: form-data; ${name}\r\n\r\n${tokens[0]}\r\n--b--\r\n`,
  );
  const cases = [...parts, 'grant_type=password'].map((body) => ({
    path: '/token',
    request: { ...form(body), contentType },
  }));
  expect(await compareReadings(cases, tokens, {})).toEqual({ forwarded: 0, read: 0 });
});

describe.each(Object.entries(readers))('%s', (name, start) => {
  const found: Record<string, TokenReader> = {};
  beforeAll(async () => {
    if (start !== undefined) found[name] = await start();
  }, 300_000);
  afterAll(async () => {
    await found[name]?.close();
  });

  it.skipIf(start === undefined)(
    'finds the token in plain requests, and in those that only this reader understands',
    async () => {
      for (const token of tokens) {
        const plain = [
          form(`refresh_token=${encodeURIComponent(token)}`),
          json(`{"refreshToken":"${token}"}`),
        ];
        const odd = (quirks[name] ?? []).map((build) => build(token));
        const all = [...plain, ...odd];
        const answers = (await found[name]?.read(all)) ?? [];
        const missed = answers.flatMap((texts, i) =>
          texts.some((text) => isSameToken(text, token) || text.includes(token.split('+')[0] as string))
            ? []
            : [i],
        );
        expect(missed, token).toEqual([]);
      }
    },
  );

  it.skipIf(start === undefined)(
    `finds no token that can be exchanged twice behind shopward (${runs} requests, seed ${seed})`,
    async () => {
      const cases = fc.sample(tokenRequests, { numRuns: runs, seed });
      const { forwarded, read } = await compareReadings(cases, tokens, found);
      expect(forwarded).toBeGreaterThan(runs / 50);
      expect(read).toBeGreaterThan(runs / 200);
    },
    300_000,
  );
});
