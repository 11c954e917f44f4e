import {
  answerDocument,
  createDocumentMatcher,
  createResourceMetadata,
  type DocumentMatcher,
  metadataPath,
} from '../access/published-documents.ts';
import type { ListInForce } from '../access/watched-list.ts';
import { listIssuers } from '../config/issuers.ts';
import type { Config } from '../config/schema.ts';
import { createCors } from '../server/own-fields.ts';
import { entityTagsDefinition } from './entity-tags.ts';
import type { FilterDefinition } from './filter-definition.ts';
import { rateLimitsDefinition } from './rate-limits.ts';
import { refreshTokensDefinition } from './refresh-tokens.ts';
import { urlResolverDefinition } from './url-resolver.ts';

const corsDefinition: FilterDefinition = {
  name: 'cors',
  stage: 'endpoint',
  compile({ cors }) {
    if (cors === undefined || cors.origins.length === 0) return undefined;
    const { isPreflight } = createCors(cors);
    return {
      name: 'cors',
      route: 'preflight',
      match: (request) => isPreflight(request) || undefined,
      describe: () => ({ text: 'by shopward: a preflight of a configured origin; needs no token' }),
    };
  },
  create(matcher, { config }) {
    const { answerPreflight } = createCors(config.cors);
    return { ...matcher, run: (_match, { request }) => answerPreflight(request) };
  },
};

const protectedResourcesDefinition: FilterDefinition<DocumentMatcher> = {
  name: 'protected-resources',
  stage: 'endpoint',
  compile: ({ protectedResourcesPath: path }) =>
    path === undefined
      ? undefined
      : createDocumentMatcher('protected-resources', path, 'the protected list for clients'),
  create(matcher, { list }) {
    return { ...matcher, run: async (_match, { request }) => answerDocument(request, await list.rendered()) };
  },
};

const metadataDefinition: FilterDefinition<DocumentMatcher> = {
  name: 'resource-metadata',
  stage: 'endpoint',
  compile: () =>
    createDocumentMatcher('resource-metadata', metadataPath, 'metadata of the protected resource (RFC 9728)'),
  create(matcher, { config, list }) {
    const metadata = createMetadata(config, list);
    return { ...matcher, run: (_match, { request }) => metadata.answer(request) };
  },
};

/** All filters, in the order in which requests meet them. A new filter needs a folder and a line here. */
export const filterDefinitions: readonly FilterDefinition[] = [
  corsDefinition,
  urlResolverDefinition,
  protectedResourcesDefinition,
  metadataDefinition,
  rateLimitsDefinition,
  refreshTokensDefinition,
  entityTagsDefinition,
];

/** The metadata document, and its URL for challenges (RFC 9728 section 5.1). */
export function createMetadata({ auth, publicUrl }: Config, list: ListInForce) {
  return createResourceMetadata({
    publicUrl,
    authorizationServers: listIssuers(auth).flatMap(({ issuer }) =>
      issuer?.startsWith('https://') ? [issuer] : [],
    ),
    list: () => list.inForce,
    proof: auth.proof,
  });
}
