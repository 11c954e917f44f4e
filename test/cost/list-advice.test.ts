import { expect, it } from 'vitest';
import { parseProtectedList } from '../../src/access/protected-list-document.ts';
import { adviceValidators } from '../../src/cli/list-advice.ts';
import { validateConfig } from '../../src/config/load.ts';

const lines = Array.from({ length: 6000 }, (_, i) => `    - GET /shop-${i % 70}/items-${i}/{id}`);
const text = `groups:\n  A:\n${lines.join('\n')}\ncomplete: true\n`;
const { config } = validateConfig({ upstream: { url: 'http://shop.example' } });

/** Milliseconds of CPU. */
function msOf(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/** What does not depend on a row is worked out once: the rules of a request, built for each row, made it eight times. */
it('the advice of check costs at most five times what it costs to read the list', () => {
  let readingMs = Number.POSITIVE_INFINITY;
  let advisingMs = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 3 || (run < 8 && advisingMs > 5 * readingMs); run += 1) {
    readingMs = Math.min(
      readingMs,
      msOf(() => parseProtectedList(text, 'list.yaml')),
    );
    advisingMs = Math.min(
      advisingMs,
      msOf(() => adviceValidators.protectedResources?.(text, 'list.yaml', config)),
    );
  }
  expect(advisingMs).toBeLessThanOrEqual(5 * readingMs);
});
