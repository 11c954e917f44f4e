import { describe, expect, it } from 'vitest';
import type { CanonicalRequest } from '../../../src/http/canonical-request.ts';
import { compileRouteLimits } from '../../../src/proxy/plan.ts';

const usual = { requestBodyBytes: 100, responseTimeoutMs: 1000 };
const limitsOf = compileRouteLimits(
  [
    { method: 'POST', path: '/uploads/**', requestBody: 1000, responseTimeout: 5000 },
    { method: 'ANY', path: '/uploads/{id}', requestBody: 500 },
    { method: 'GET', path: '/reports', responseTimeout: 60_000 },
  ],
  usual,
  { ignoredPrefixes: ['/index.php'] },
);

describe('limits by route', () => {
  it.each([
    ['POST /uploads/a/b', 1000, 5000],
    ['POST /uploads/a', 500, 5000],
    ['PUT /uploads/a', 500, 1000],
    ['GET /reports', 100, 60_000],
    ['HEAD /reports', 100, 60_000],
    ['GET /orders', 100, 1000],
    // Other spellings do not match here, so that no request gets a looser limit by accident.
    ['POST /UPLOADS/a/b', 100, 1000],
    ['POST /uploads;x/a/b', 100, 1000],
    ['POST /index.php/uploads/a/b', 100, 1000],
    ['POST /v1/uploads/a/b', 100, 1000],
    ['GET /a/1/reports', 100, 1000],
    ['OPTIONS /uploads/a', 100, 1000],
  ])('%s: %i bytes, %i ms', (line, requestBodyBytes, responseTimeoutMs) => {
    const [method = '', path = ''] = line.split(' ');
    const request = { method, segments: path.slice(1).split('/'), isFormPost: false } as unknown;
    expect(limitsOf?.(request as CanonicalRequest)).toEqual({ requestBodyBytes, responseTimeoutMs });
  });
});
