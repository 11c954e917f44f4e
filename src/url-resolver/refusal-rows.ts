import { ownAnswer, type WrittenRow } from '../http/rejection-row.ts';

/** Refusals of the resolver (contract: Resolve a SEF URL). */
export const resolverRefusals = {
  'url-missing': ownAnswer(422, 'Url request parameter is missing.', '2801'),
  'url-not-found': ownAnswer(404, 'Url not found.', '2802'),
} as const satisfies Record<string, WrittenRow>;
