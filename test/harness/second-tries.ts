import { stripVTControlCharacters } from 'node:util';
import type { Reporter, TestCase, TestModule } from 'vitest/node';

/** Names what failed at first and passed when it was tried again, with the error: nothing of it is lost in a green run. */
export class SecondTries implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const again = modules
      .flatMap((module) => [...module.children.allTests('passed')])
      .filter((test) => (test.diagnostic()?.retryCount ?? 0) > 0);
    if (again.length === 0) return;
    console.log(`Passed only when tried again (${again.length}): look at each.`);
    for (const test of again) console.log(told(test));
  }
}

function told(test: TestCase): string {
  const { errors = [] } = test.result();
  // The message shortens what was compared; the difference does not.
  const lines = errors.flatMap(({ message, diff }) =>
    [message, diff].map((text) => text && `    ${stripVTControlCharacters(text).replaceAll('\n', '\n    ')}`),
  );
  return [`  ${test.module.relativeModuleId} > ${test.fullName}`, ...lines].filter(Boolean).join('\n');
}
