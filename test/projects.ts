/** What `npm run test:quick` leaves out; vitest.config.ts runs the rest as its project `quick`. */

/**
 * They compare the CPU of one thing with another's: few others beside them. The longest first. The last counts what a
 * module is asked, so nobody may have imported it before.
 */
export const measures = [
  'test/cost/{socket,documents}.test.ts',
  'test/budget/**',
  'test/cost/pure.test.ts',
  'test/cost/**',
  'test/http/path-table-cost.test.ts',
];

/**
 * Those of `slow` that mostly wait: for leases that run out, for senders that are slow, for a store that comes back. They
 * run between those that compute, so that no core is idle.
 */
export const waiting = [
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
  'test/{attacks/j7-remembered-tokens,attacks/x3-slow-readers,harness/fault-proxy}.test.ts',
];

/**
 * They start stores, browsers or many processes, kill them, wait for what has a time of its own, or try very many
 * inputs. The ones that take longest come first, so that none of them is the last to end. "Seconds of CPU" are those of
 * the test with all processes that it starts, on a machine that others used, too: a quiet one needs about half.
 */
export const slow = [
  ...waiting,
  // They compare bytes with bytes, and wait for a process to be still: most of their time is waiting.
  'test/server/{body,answer}-memory.test.ts',
  // 20 to 50 seconds of CPU. The model computes all the time, and so goes beside those.
  'test/entity-tags/model/{model,broken-rules}.test.ts',
  'test/hunt/hunt.test.ts',
  'test/end-to-end/{rolling-restart,reload-under-load}.test.ts',
  'test/drill/**',
  'test/faults/other-faults.test.ts',
  // 10 to 20.
  'test/end-to-end/{workers,decided-is-forwarded,wiring}.test.ts',
  'test/attacks/corpus.test.ts',
  'test/deploy/**',
  'test/differential/**',
  'test/admin/console-{hostile-list,sleep,pasted,keyboard}.test.ts',
  // Less than 10.
  'test/{soak,faults}/**',
  'test/end-to-end/{entity-tags,contract,url-resolver-sources}.test.ts',
  'test/attacks/neighbours.test.ts',
  'test/entity-tags/scripts.test.ts',
  'test/refresh-tokens/{crashes,store-faults,store-contract,broken-protocol,record-size,token-states,scripts}.test.ts',
  'test/end-to-end/**',
  'test/attacks/{j7-remembered-tokens,x8-pipelining}.test.ts',
  'test/docs/{clients,commands,quick-start}.test.ts',
  'test/cli/{command-line,command-line-page,terminal-escapes,tokens,verify-findings}.test.ts',
  'test/url-resolver/{freshness,learning,mapping-file,sharing}.test.ts',
  'test/harness/redis-processes.test.ts',
  'test/fuzz/**',
  'test/**/*{.property,-fuzz}.test.ts',
  'test/scripts/{arguments,audit,isolation}.test.ts',
  'test/{proxy/plan-and-proxy,upstream/alike/engines-alike,upstream/forwarded-exchange}.test.ts',
  'test/attacks/{p10-unreserved-escapes,p19-costly-paths,p20-neighbours-of-rows}.test.ts',
  'test/access/list-thread.test.ts',
  'test/cli/{protected-import,protected-openapi,verify-bounds,loaded-files}.test.ts',
  'test/demo/shop-main.test.ts',
  'test/{access/protected-list-truncation,config/taken-is-built}.test.ts',
  'test/attacks/x*.test.ts',
  'test/admin/{admin-connections,list-endpoints,console-states,workers-api}.test.ts',
  'test/cli/token.test.ts',
  'test/rollout/{rollout,shared-counts}.test.ts',
  'test/rate-limits/{buckets,rate-limits}.test.ts',
  'test/refresh-tokens/memory-store-room.test.ts',
  // Half a second to three seconds of CPU each: cut at every octet, thousands of rows, floods, processes.
  'test/upstream/piece-memory.test.ts',
  'test/admin/list-history.test.ts',
  'test/attacks/{j15-floods-of-bad-tokens,o9-supply-chain}.test.ts',
  'test/telemetry/tracing.test.ts',
];

/** Of the quick ones those that take longest, most of it waiting: they begin first, so that nobody waits for their end. */
export const longest = [
  'test/{http/canonicalise-request,config/problems,admin/api}.test.ts',
  'test/cli/{verify,explain}.test.ts',
  'test/{access/protected-list-document,upstream/pool/listener-closes}.test.ts',
  'test/{server/client-message,url-resolver/mapping-rows,demo/url-resolver,config/watch}.test.ts',
];
