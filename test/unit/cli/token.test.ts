import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { runToken } from '../../../src/cli/token.ts';
import { freePort } from '../../harness/free-port.ts';
import { listOf } from '../access/list-text.ts';
import { makeSigner, makeToken, publicPem } from '../access/signing.ts';
import { makeFolder } from '../config/config-folder.ts';
import { runCommand } from './command-run.ts';

const signer = makeSigner('RS256');
const now = Math.floor(Date.now() / 1000);
const good = { sub: 'DE--21', exp: now + 600, iat: now, scope: 'customer', email: 'a@b.example' };

async function token(
  given: string | undefined,
  { input = '', keys = '{ files: [key.pem] }', ...options }: Record<string, unknown> = {},
) {
  const cwd = makeFolder({
    'config/shopward.yaml': `auth: { keys: ${keys}, issuer: us }\n`,
    'config/key.pem': publicPem(signer),
    'config/protected-resources.yaml': listOf('GET /carts', '{ match: "GET /reports", scopes: [analyst] }'),
  });
  const read = await runCommand(
    (io) => runToken(given, options, { ...io, input: Readable.from([Buffer.from(String(input))]) }),
    { cwd },
  );
  return { ...read, text: [...read.out, ...read.err].join('\n') };
}

describe('shopward token', () => {
  const accepted = makeToken(signer, { ...good, iss: 'us' });

  it.each(['', 'Bearer ', 'Authorization: Bearer ', '\ufeff'])(
    'reads %j and the token from its input',
    async (start) => {
      const { code, out, err } = await token('-', { input: `${start}${accepted}\n` });
      expect([code, out[0], err]).toEqual([0, 'accepted', []]);
    },
  );

  it('warns of a token among the arguments', async () => {
    const { code, err } = await token(accepted);
    expect([code, err[0]]).toEqual([0, expect.stringContaining('history of the shell')]);
  });

  it('says why, what to do, and the facts behind it', async () => {
    const { code, out } = await token(undefined, { input: makeToken(signer, { ...good, iss: 'them' }) });
    expect(code).toBe(1);
    expect(out.slice(0, 3)).toEqual([
      'refused: access-token-invalid, issuer',
      expect.stringMatching(/^ {2}why {13}Its `iss` is neither /),
      '  see             docs/reasons.md#issuer',
    ]);
    expect(out).toContain('  iss             "them", us is accepted');
  });

  it('prints claims only with --claims, and never the signature', async () => {
    const signature = accepted.split('.')[2] ?? '';
    const plain = await token('-', { input: accepted });
    const asked = await token('-', { input: accepted, claims: true, json: true });
    expect([plain.text.includes('a@b.example'), asked.text.includes('a@b.example')]).toEqual([false, true]);
    expect((plain.text + asked.text).includes(signature)).toBe(false);
    expect(JSON.parse(asked.out.join(''))).toMatchObject({ accepted: true, subject: 'DE--21' });
  });

  it('exits 69 if the keys cannot be loaded', async () => {
    const keys = `{ jwks: "http://127.0.0.1:${await freePort()}/" }`;
    expect((await token('-', { input: accepted, keys })).code).toBe(69);
  });

  it.each([
    [2, 'no input', ''],
    [2, 'blanks', ' \n'],
    [2, 'no token', 'Bearer '],
    [1, 'a letter', 'x'],
    [1, '70 kB', 'e'.repeat(70_000)],
    [1, '60,000 dots', '.'.repeat(60_000)],
    [1, 'half a JSON text', '{"alg":'],
  ])('exits %i for %s', async (code, _, input) => {
    expect((await token('-', { input })).code).toBe(code);
  });
});
