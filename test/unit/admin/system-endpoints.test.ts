import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { createPurgeEndpoint } from '../../../src/admin/state-endpoints.ts';
import { rejectionTable } from '../../../src/http/rejection.ts';
import { parseReasons } from '../../../src/rollout/reasons.ts';

describe('reasons', () => {
  const document = readFileSync(path.join(import.meta.dirname, '../../../docs/reasons.md'), 'utf8');

  it('are read from the docs page for each rejection, without Markdown except code', () => {
    const reasons = parseReasons(document);
    const names = reasons.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(Object.keys(rejectionTable)));
    for (const { name, cause, cure } of reasons) {
      expect(`${cause}${cure}`.length, name).toBeGreaterThan(10);
      expect(cure.replaceAll(/`[^`]+`/g, ''), name).not.toMatch(/[`*]|\]\(/);
    }
  });

  it('of refused tokens and proofs are read, too', () => {
    const expired = parseReasons(document).find(({ name }) => name === 'expired');
    expect(expired?.cause).toMatch(/^Its `exp` has passed: refresh it\. If it is new, compare the clocks/);
    const url = parseReasons(document).find(({ name }) => name === 'proof-url');
    expect(url?.cause).toMatch(/^The proof names another URL\./);
  });
});

it('a purge answers 503 if the log of purges is unavailable', async () => {
  const run = (outcome: 'purged' | 'unavailable') =>
    createPurgeEndpoint(async () => outcome).run({ body: { all: true }, query: new Map() });
  expect(await run('purged')).toMatchObject({ status: 200 });
  expect(await run('unavailable')).toMatchObject({ status: 503 });
});
