import { refusal, type WrittenRow } from '../http/rejection-row.ts';

/** Refusals of rate limits (RFC 6585). */
export const rateLimitRefusals = {
  'rate-limited': refusal(429, 'Too many requests.'),
} as const satisfies Record<string, WrittenRow>;
