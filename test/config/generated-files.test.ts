import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

// Every default, bound and choice of a setting stands in one of these files: none changes unseen.
it('what is generated from the schema is in step with it: otherwise run npm run docs', async () => {
  const run = promisify(execFile)(process.execPath, ['scripts/generate-docs.ts', '--check']);
  await expect(run).resolves.toEqual({ stdout: '', stderr: '' });
});
