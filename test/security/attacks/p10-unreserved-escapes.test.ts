import { afterAll, beforeAll, expect, it } from 'vitest';
import { contractCalls } from '../../end-to-end/demo/contract-calls.ts';
import { request, useAttackStage } from '../../harness/attack-stage.ts';
import { createKeptClient, type KeptClient } from '../../harness/kept-client.ts';

const stage = useAttackStage();
let client: KeptClient;
beforeAll(() => {
  client = createKeptClient(stage.port);
});
afterAll(() => client.close());

function escapeOf(letter: string, hex: (text: string) => string): string {
  return `%${hex(letter.charCodeAt(0).toString(16).padStart(2, '0'))}`;
}

/** P10: `%6f` is `o` (RFC 3986 section 6.2.2.2), and an upstream that decodes reads it so. */
it.each(contractCalls)('P10: 401 for $row with any one letter escaped', async ({ method, path }) => {
  const spellings = [...path].flatMap((letter, at) =>
    letter === '/'
      ? []
      : [String, (hex: string) => hex.toUpperCase()].map(
          (hex) => path.slice(0, at) + escapeOf(letter, hex) + path.slice(at + 1),
        ),
  );
  spellings.push(path.replace(/[^/]/g, (letter) => escapeOf(letter, String)));
  const before = stage.upstream.bytes();
  const statuses = new Set<string>();
  for (const spelling of spellings) {
    const { status } = await client.exchange(
      request(`${method} ${spelling}`, ['Content-Type: application/json']),
    );
    statuses.add(`${status}`);
  }
  expect([...statuses]).toEqual(['401']);
  expect(stage.upstream.bytes()).toBe(before);
});

it('P10: the decoded path is forwarded', async () => {
  const token = stage.shopward.issueToken();
  const { requestLine } = await stage.passes(
    request('GET /%6f%72ders/%44E--1%30', [`Authorization: Bearer ${token}`]),
  );
  expect(requestLine).toBe('GET /orders/DE--10 HTTP/1.1');
});
