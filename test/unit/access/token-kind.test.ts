import { expect, it } from 'vitest';
import { createKindCheck, type ProofMode } from '../../../src/access/token-kind.ts';

const thumbprint = 'x'.repeat(43);
const [key, certificate] = [{ jkt: thumbprint }, { 'x5t#S256': thumbprint }];

it.each<[ProofMode, readonly object[]]>([
  ['none', []],
  ['dpop', [key]],
  ['mtls', [certificate]],
  ['any', [key, certificate]],
])('auth.proof: %s accepts the bindings that it checks, and no others', (mode, accepted) => {
  const check = createKindCheck(undefined, mode);
  const all = [key, certificate, { ...key, ...certificate }, { ...key, kid: 'k' }, { kid: 'k' }, {}];
  expect(all.filter((cnf) => check({ cnf }, false) === undefined)).toEqual(accepted);
});
