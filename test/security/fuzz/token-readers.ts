import fc from 'fast-check';
import { compareReadings } from '../differential/token-readers/forwarding-of.ts';
import { tokenRequests, tokens } from '../differential/token-readers/token-requests.ts';
import type { TokenReader } from '../differential/token-readers/wire-request.ts';
import { type FuzzTarget, fuzzTarget } from './fuzz-target.ts';

const started: Record<string, TokenReader> = {};

/** Token requests for real readers in seven languages: no used token is exchanged, and no token twice. */
export const tokenReaders: FuzzTarget = fuzzTarget(
  'token-readers',
  fc.array(tokenRequests, { minLength: 100, maxLength: 300, size: 'max' }),
  async (cases) => {
    await compareReadings(cases, tokens, started);
  },
  {
    runs: 2,
    open: async () => {
      // Loaded late: it looks for PHP, Go and others, which `--help` does not need.
      const { readers } = await import('../differential/token-readers/readers.ts');
      for (const [name, start] of Object.entries(readers)) {
        if (start !== undefined) started[name] = await start();
      }
    },
    close: async () => {
      for (const reader of Object.values(started)) await reader.close();
    },
  },
);
