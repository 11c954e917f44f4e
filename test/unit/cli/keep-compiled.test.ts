import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import { keepCompiled } from '../../../src/cli/keep-compiled.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'shopward-kept-'));
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

// For the built program see test/end-to-end/deploy/package.test.ts.
it('no compiled code is kept when run from a clone', () => {
  vi.stubEnv('NODE_COMPILE_CACHE', undefined);
  vi.stubEnv('NODE_DISABLE_COMPILE_CACHE', undefined);
  const kept = path.join(folder, 'compiled');
  keepCompiled(kept);
  expect(existsSync(kept)).toBe(false);
  expect(process.env.NODE_COMPILE_CACHE).toBeUndefined();
});
