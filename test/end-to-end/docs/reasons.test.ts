import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildRejections } from '../../../src/http/rejection.ts';
import { reasonLink } from '../../../src/rollout/reasons.ts';

const root = path.join(import.meta.dirname, '../../..');
const page = readFileSync(path.join(root, 'docs/reasons.md'), 'utf8');
const keys = new Set(
  [...readFileSync(path.join(root, 'docs/configuration.md'), 'utf8').matchAll(/`([a-z][A-Za-z.]+)`/g)].map(
    ([, key = '']) => key,
  ),
);

const ofTokenReasons = /### What is wrong with a token[\s\S]*?(?=\n## )/.exec(page)?.[0] ?? '';

describe('docs/reasons.md', () => {
  const rows = new Map(
    page
      .split('\n')
      .filter((line) => line.startsWith('|<a '))
      .map((line) => [/id="([^"]+)"/.exec(line)?.[1] ?? '', line]),
  );

  it.each(Object.entries(buildRejections()))('has %s with its status and code', (name, { status, code }) => {
    const said = code === name ? String(status) : `${status}, \`${code}\``;
    expect(rows.get(name)).toContain(`\`${name}\`|${said}|`);
  });

  it('has no row for an unknown rejection', () => {
    const ofTokens = ofTokenReasons.split('\n').filter((line) => line.startsWith('|<a '));
    expect(rows.size).toBe(Object.keys(buildRejections()).length + ofTokens.length);
  });

  it('links each refusal to the page, also one with an unlisted reason', () => {
    for (const name of Object.keys(buildRejections()) as (keyof ReturnType<typeof buildRejections>)[]) {
      expect(reasonLink(name, 'whatever')).toBe(`docs/reasons.md#${name}`);
    }
  });

  it('names keys of the configuration that exist', () => {
    const named = [...page.matchAll(/`((?:limits|upstream|auth|listen|cors|refreshTokens)\.[A-Za-z.]+)`/g)];
    expect(named.length).toBeGreaterThan(5);
    for (const [, key = ''] of named) expect(keys, key).toContain(key);
  });
});
