import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildRejections } from '../../../src/http/rejection.ts';
import { adviceOn, reasonLink } from '../../../src/rollout/reasons.ts';

const root = path.join(import.meta.dirname, '../../..');
const page = readFileSync(path.join(root, 'docs/reasons.md'), 'utf8');
const keys = new Set(
  [...readFileSync(path.join(root, 'docs/configuration.md'), 'utf8').matchAll(/`([a-z][A-Za-z.]+)`/g)].map(
    ([, key = '']) => key,
  ),
);

const proofs = readFileSync(path.join(root, 'src/access/proof-of-possession.ts'), 'utf8');
/** The names in the source, without three words that are no reasons. */
const proofReasons = [
  ...new Set(
    [...proofs.matchAll(/'(bearer|(?:no-)?(?:proof|certificate)\b[a-z-]*)'/g)].map(([, name = '']) => name),
  ),
].filter((name) => !['proof', 'proof-invalid', 'proof-store'].includes(name));

const ofTokenReasons = /### What is wrong with a token[\s\S]*?(?=\n### )/.exec(page)?.[0] ?? '';

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

  it('has no anchor for an unknown rejection or reason, and none twice', () => {
    const anchors = [...page.matchAll(/<a id="([^"]+)">/g)].map(([, id]) => id);
    const ofTokens = [...ofTokenReasons.matchAll(/^\|<a /gm)];
    expect(anchors.length).toBe(
      Object.keys(buildRejections()).length + ofTokens.length + proofReasons.length,
    );
    expect(new Set(anchors).size).toBe(anchors.length);
  });

  it.each(proofReasons)('has the reason %s of a proof, and the lookups find it', (reason) => {
    expect(page).toContain(`<a id="${reason}"></a>\`${reason}\``);
    expect(adviceOn('proof-invalid', reason)).toMatchObject({
      cause: 'client',
      next: expect.stringMatching(/.{20}/),
      more: `docs/reasons.md#${reason}`,
    });
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
