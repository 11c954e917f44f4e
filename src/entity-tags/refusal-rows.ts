import { outage, refusal, type WrittenRow } from '../http/rejection-row.ts';

/** Refusals of entity tags (contract: Endpoints supporting ETags; RFC 9110 section 13, RFC 6585). */
export const entityTagRefusals = {
  'if-match-missing': refusal(428, 'If-Match header is missing.', '005'),
  'if-match-invalid': refusal(
    412,
    'If-Match is not the current tag, or If-None-Match is * and the resource exists: fetch it again, compare, and send the new tag.',
    '006',
  ),
  'collection-write': refusal(400, 'A collection is not changed as a whole here, but member by member.'),
  'tag-store-unavailable': outage(503, 'The state of this resource cannot be checked at the moment.'),
  'resource-busy': refusal(503, 'Another change of this resource is under way.'),
} as const satisfies Record<string, WrittenRow>;
