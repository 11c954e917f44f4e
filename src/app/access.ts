import { createAuthenticate } from '../access/authenticate.ts';
import { createProofCheck, createProofNonces, proofLifeMs } from '../access/proof-of-possession.ts';
import { type InspectToken, inspectToken } from '../access/token-inspection.ts';
import { acceptsDpop } from '../access/token-kind.ts';
import { createUsedProofs } from '../access/used-proofs.ts';
import { type StartList, WatchedList } from '../access/watched-list.ts';
import type { Config } from '../config/schema.ts';
import type { Component } from '../lib/component.ts';
import type { RedisStore } from '../redis/store.ts';
import type { Log } from '../telemetry/log.ts';
import type { ClockCheck } from './clock.ts';
import { createMetadata } from './filters.ts';
import { createIssuers } from './issuers.ts';

/** Creates the protected list, the issuers, and the access check. `protectedList`: the list that was read and checked at the start. */
export function createAccess(
  config: Config,
  protectedList: StartList,
  isWatched: boolean,
  log: Log,
  clock: ClockCheck,
  store: RedisStore | undefined,
) {
  const list = new WatchedList({
    file: config.protectedResources,
    ...protectedList,
    paths: config.request,
    isWatched,
    log,
  });
  const { issuers, ...tokens } = createIssuers(config, log, (fields, askedMs) =>
    clock.hearDate('keys', fields, askedMs),
  );
  const inspect: InspectToken = (token, asked) => inspectToken(token, issuers, asked, config.auth.forward);
  const remembered: Component = {
    name: 'access-token',
    close() {
      for (const { signed } of issuers.all) signed?.close();
    },
  };
  return {
    list,
    tokens: { ...tokens, components: [...tokens.components, remembered] },
    authenticate: createAuthenticate({
      verifier: issuers.verifier,
      takesOpaque: issuers.takesOpaque,
      proof: createProofs(config, store),
      resourceMetadataUrl: createMetadata(config, list).url,
      forwarding: config.auth,
      cookieOrigins: config.auth.cookieOrigins,
      sessionCookies: config.auth.sessionCookies,
    }),
    inspectToken: inspect,
  };
}

/** Undefined if `auth.proof` is `none`. */
function createProofs({ auth, limits, publicUrl, store: { prefix, replicas } }: Config, store?: RedisStore) {
  const { proof: mode, proofNonceSecret: secret, clockTolerance: clockToleranceMs } = auth;
  if (mode === 'none') return undefined;
  if (!acceptsDpop(mode)) return { mode, check: createProofCheck(), nonces: undefined };
  const nonces = secret === undefined ? undefined : createProofNonces(secret, clockToleranceMs, Date.now);
  const useProof = createUsedProofs({
    keptMs: proofLifeMs(clockToleranceMs),
    sharePercent: limits.clientShare,
    records: store && { redis: store.redis, keyPrefix: prefix, replicas },
  });
  const check = createProofCheck({ clockToleranceMs, publicUrl, useProof, nonces, now: Date.now });
  return { mode, check, nonces };
}
