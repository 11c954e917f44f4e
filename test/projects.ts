// The lists of this file are what `npm run test:quick` leaves out; vitest.config.ts runs the rest as its project `quick`.

/** They count what a request allocates, or compare CPU, so few other tests run beside them. */
export const measures = ['test/budget/**', 'test/cost/turns.test.ts'];

/** They count blocks of code or calls of a module, so each needs a process of its own. */
export const isolated = ['test/cost/**', 'test/routes/path-table-cost.test.ts'];

/**
 * Those of `slow` that mostly wait: for leases that run out, for senders that are slow, for a store that comes back. They
 * run between those that compute, so that no core is idle.
 */
export const waiting = [
  'test/deploy/provoked-alerts.test.ts',
  'test/admin/{console-replicas,console,console-list-and-system,console-states}.test.ts',
  'test/{soak/soak,entity-tags/honest-users,upstream/big-bodies,end-to-end/stuck}.test.ts',
  'test/end-to-end/{shared-store,cures,drain,entity-tag-store,store-kinds}.test.ts',
  'test/upstream/{stale-connections,websocket-ends}.test.ts',
  'test/redis/{connect-redis,store-state,claims,membership}.test.ts',
  'test/attacks/{x1-slow-senders,x10-leases-of-strangers,h3-queue,f7-upstream-dies}.test.ts',
  'test/server/{handshake,listener-drain}.test.ts',
  'test/{faults/redis-faults,faults/upstream-faults,entity-tags/tag-store,refresh-tokens/replicas}.test.ts',
  'test/{rollout/rollout,rollout/shared-counts,rate-limits/buckets,rate-limits/rate-limits}.test.ts',
  'test/end-to-end/{refresh-tokens,rejections,websocket,observe,rare-refusals}.test.ts',
  // Deadlines of seconds, one after another, and little besides.
  'test/cli/{tokens,init}.test.ts',
  'test/{access/jwks-key-source,access/introspection,admin/admin-server,docs/quick-start}.test.ts',
  'test/{upstream/answers,upstream/hooks,attacks/h24-early-answer,harness/redis-processes}.test.ts',
  'test/{attacks/j7-remembered-tokens,attacks/x3-slow-readers}.test.ts',
];

/**
 * They start stores, browsers or many processes, kill them, wait for what has a time of its own, or try very many
 * inputs. The ones that take longest come first, so that none of them is the last to end. Seconds are those of a run of
 * all tests on two cores.
 */
export const slow = [
  ...waiting,
  // 20 to 60 s.
  'test/server/body-memory.test.ts',
  'test/entity-tags/model/model.test.ts',
  'test/drill/**',
  'test/hunt/hunt.test.ts',
  'test/end-to-end/{reload-under-load,rolling-restart}.test.ts',
  'test/server/{answer-memory,pipelined-memory}.test.ts',
  'test/admin/console-hostile-list.test.ts',
  'test/entity-tags/model/broken-rules.test.ts',
  'test/differential/differential.test.ts',
  // 10 to 20 s.
  'test/deploy/{image,package}.test.ts',
  'test/attacks/corpus.test.ts',
  'test/end-to-end/{workers,decided-is-forwarded,wiring}.test.ts',
  'test/faults/other-faults.test.ts',
  'test/routes/path-table.property.test.ts',
  'test/admin/console-sleep.test.ts',
  'test/fuzz/**',
  'test/cli/protected-import.test.ts',
  // 5 to 10 s.
  'test/differential/pair-shop.test.ts',
  'test/admin/{list-history,console-pasted}.test.ts',
  'test/{config/mutated-config,upstream/read-buffers,docs/clients,proxy/plan-and-proxy}.test.ts',
  'test/end-to-end/{stopped-log-reader,bad-start,secrets-reload}.test.ts',
  'test/scripts/{arguments,isolation}.test.ts',
  'test/refresh-tokens/{crashes,token-states,store-faults,record-size}.test.ts',
  'test/deploy/**',
  'test/authorize/fronts.test.ts',
  // Less.
  'test/{soak,faults,differential}/**',
  'test/end-to-end/**',
  'test/attacks/{neighbours,p10-unreserved-escapes,p19-costly-paths,p20-neighbours-of-rows}.test.ts',
  'test/attacks/{j15-floods-of-bad-tokens,o9-supply-chain,x*}.test.ts',
  'test/entity-tags/scripts.test.ts',
  'test/refresh-tokens/{store-contract,broken-protocol,scripts,memory-store-room}.test.ts',
  'test/docs/commands.test.ts',
  'test/cli/{command-line,command-line-page,terminal-escapes,token,verify-findings,verify-bounds}.test.ts',
  'test/cli/{protected-openapi,loaded-files,store-tls}.test.ts',
  'test/url-resolver/{fair-questions,freshness,mapping-file,sharing}.test.ts',
  'test/**/*.property.test.ts',
  'test/upstream/{random-answers,forwarded-exchange}.test.ts',
  'test/{access/protected-list-truncation,telemetry/{otlp,tracing}}.test.ts',
  'test/admin/{admin-connections,list-endpoints,console-keyboard,workers-api}.test.ts',
];

/** Of the quick ones those that take longest, most of it waiting: they begin first, so that nobody waits for their end. */
export const longest = [
  'test/{http/canonicalise-request,config/problems,admin/api}.test.ts',
  'test/cli/{verify,explain}.test.ts',
  'test/{access/protected-list-document,upstream/listener-closes}.test.ts',
  'test/{server/client-message,url-resolver/mapping-rows,config/watch}.test.ts',
];
