import { outage, type WrittenRow } from '../http/rejection-row.ts';

/** Refusals of the upstream. */
export const upstreamRefusals = {
  'upstream-unreachable': outage(502, 'The upstream cannot be reached.'),
  'upstream-invalid': outage(502, 'The upstream sent an invalid response.'),
  'upstream-timeout': outage(504, 'The upstream did not answer in time.'),
} as const satisfies Record<string, WrittenRow>;
