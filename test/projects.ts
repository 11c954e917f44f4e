// The lists of this file are what `npm run test:quick` leaves out; vitest.config.ts runs the rest as its project `quick`.

/** They count what a request allocates, or compare CPU times, so they run after all others. */
export const measures = ['test/performance/budget/**', 'test/security/cost/ticks.test.ts'];

/** They count blocks of code or calls of a module, so each needs a process of its own. */
export const isolated = ['test/security/cost/**', 'test/unit/routes/path-table-cost.test.ts'];

/**
 * Files of `slow` that mostly wait: for the end of a lease, a slow sender, a store that comes back. They run between files
 * that compute, so that no core is idle.
 */
export const waiting = [
  'test/end-to-end/deploy/provoked-alerts.test.ts',
  'test/unit/admin/{console,console-list-and-system,console-states}.test.ts',
  'test/{resilience/soak/soak,unit/entity-tags/honest-users,end-to-end/stuck}.test.ts',
  'test/end-to-end/{shared-store,cures,drain}.test.ts',
  'test/unit/upstream/{stale-connections,websocket-ends}.test.ts',
  'test/unit/redis/{connect-redis,store-state,store,claims,membership}.test.ts',
  'test/security/attacks/{x1-slow-senders,x10-leases-of-anonymous,h3-queue,f7-upstream-dies}.test.ts',
  'test/unit/server/listener.test.ts',
  'test/{resilience/faults/redis-faults,resilience/faults/upstream-faults,unit/entity-tags/tag-store,unit/refresh-tokens/replicas}.test.ts',
  'test/{unit/rollout/rollout,unit/rate-limits/buckets,unit/rate-limits/rate-limits}.test.ts',
  'test/end-to-end/{refresh-renewals,refresh-tokens,rejections,websocket,observe,rare-refusals}.test.ts',
  // They wait for deadlines of seconds, one after another, and do little else.
  'test/unit/{cli/tokens,cli/init,telemetry/otlp}.test.ts',
  'test/{unit/access/jwks-key-source,unit/access/introspection,unit/admin/admin-server,end-to-end/docs/quick-start}.test.ts',
  'test/{unit/upstream/answers,unit/upstream/hooks,security/attacks/h24-early-answer}.test.ts',
  'test/{security/attacks/j7-remembered-tokens,security/attacks/x3-slow-readers}.test.ts',
];

/**
 * They start stores, browsers or many processes, kill them, wait for deadlines, or try very many inputs. The longest come
 * first, so that none of them ends last. Seconds are those of a run of all tests on two cores.
 */
export const slow = [
  ...waiting,
  // 20 to 60 s.
  'test/unit/server/body-memory.test.ts',
  'test/unit/entity-tags/model/model.test.ts',
  'test/resilience/drill/**',
  'test/resilience/hunt/hunt.test.ts',
  'test/end-to-end/{reload-under-load,rolling-restart,long-list,workers}.test.ts',
  'test/unit/server/unread-memory.test.ts',
  'test/unit/admin/console-hostile-list.test.ts',
  'test/unit/entity-tags/model/broken-rules.test.ts',
  'test/security/differential/{asking,differential,token-readers}.test.ts',
  // 10 to 20 s.
  'test/end-to-end/deploy/{image,package}.test.ts',
  'test/security/attacks/corpus.test.ts',
  'test/end-to-end/{decided-is-forwarded,wiring,entity-tag-variants,hot-settings}.test.ts',
  'test/resilience/faults/other-faults.test.ts',
  'test/unit/routes/path-table.property.test.ts',
  'test/security/fuzz/**',
  'test/unit/cli/protected-import.test.ts',
  // 5 to 10 s.
  'test/security/differential/pair-shop.test.ts',
  'test/unit/admin/list-history.test.ts',
  'test/{unit/config/mutated-config,unit/upstream/read-buffers,end-to-end/docs/clients,unit/proxy/plan-and-proxy}.test.ts',
  'test/end-to-end/{stopped-log-reader,bad-start,secrets-reload}.test.ts',
  'test/end-to-end/deploy/**',
  'test/unit/authorize/fronts.test.ts',
  // These would take half of the CPU of the quick tests.
  'test/unit/access/{plain-rows,protected-list-shipped}.test.ts',
  'test/unit/upstream/{client-model,public-references,connection-reuse}.test.ts',
  'test/unit/server/{open-websockets,client-message}.test.ts',
  'test/unit/entity-tags/{entity-tags,tracked-reads}.test.ts',
  'test/unit/refresh-tokens/model.test.ts',
  'test/unit/url-resolver/{purge-model,url-parameter,mapping-rows,source}.test.ts',
  'test/unit/cli/{mutated-files,explain,explain-pasted,check,verify,schema}.test.ts',
  'test/unit/{authorize/question,rollout/counts,telemetry/pretty}.test.ts',
  'test/security/attacks/{p14-method-override,h25-lost-refusals,j19-proof,h10-spoofed-addresses}.test.ts',
  'test/security/attacks/{p22-*,j8-key-server-down,j9-key-rotation,j20-certificates,wycheproof}.test.ts',
  // The rest.
  'test/{resilience/soak,resilience/faults,security/differential}/**',
  'test/end-to-end/**',
  'test/security/attacks/{neighbours,p10-unreserved-escapes,p19-costly-paths,p20-neighbours-of-rows}.test.ts',
  'test/security/attacks/{j15-floods-of-bad-tokens,o5-secrets-in-logs,o9-supply-chain,p21-shop-profiles,tokens,x*}.test.ts',
  'test/unit/entity-tags/scripts.test.ts',
  'test/unit/refresh-tokens/{store-contract,broken-protocol}.test.ts',
  'test/unit/cli/{command-line,terminal-escapes,token,verify-findings,verify-bounds}.test.ts',
  'test/unit/url-resolver/{fair-questions,freshness,sharing}.test.ts',
  'test/**/*.property.test.ts',
  'test/unit/upstream/random-answers.test.ts',
  'test/unit/access/protected-list-truncation.test.ts',
  'test/unit/admin/{admin-connections,console-keyboard}.test.ts',
];
