import type { KeySource } from '../access/key-source.ts';
import type { UpstreamActivity } from '../admin/activity.ts';
import type { PartState } from '../admin/incidents.ts';
import type { Config } from '../config/schema.ts';
import type { Component, HealthDetail } from '../lib/component.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Forwarder } from '../upstream/forwarder.ts';
import type { UrlResolver } from '../url-resolver/url-resolver.ts';
import { keyFaultText } from './key-fault-text.ts';
import type { RedisPart } from './redis.ts';

export interface PartSources {
  readonly config: Config;
  readonly keys: KeySource;
  readonly forwarder: Pick<Forwarder, 'inFlight' | 'queued'>;
  readonly redis: Pick<RedisPart, 'redis' | 'health'> | undefined;
  /** Reasons of the entity tags' own part. */
  readonly tags: Pick<Component, 'health'> | false;
  readonly resolver: { readonly resolver: UrlResolver } | false;
  /** Everything that is started and let go. */
  readonly parts: readonly Component[];
  readonly metrics: Metrics;
  readonly log: Log;
}

/** The dependencies and features, each as operators see it. Asks nobody: what is known already is told. */
export async function describeParts(sources: PartSources, upstream: UpstreamActivity): Promise<PartState[]> {
  return [
    describeUpstream(sources, upstream),
    describeKeys(sources.keys),
    describeStore(sources.redis),
    await describeTags(sources),
    describeResolver(sources.resolver),
    await describeTokens(sources),
    ...sources.parts.filter(({ name }) => !described.has(name)).flatMap(describeComponent),
  ];
}

/** Those above have words of their own. */
const described: ReadonlySet<string> = new Set(['store', 'entity-tags', 'url-resolver', 'refresh-tokens']);

/** Whatever else has a health of its own, as it tells it. */
function describeComponent({ name, health }: Component): PartState[] {
  const told = health?.();
  if (told === undefined) return [];
  const status = told.status === 'degraded' ? 'limping' : told.status;
  return [
    { id: name, title: name, status, text: told.reasons[0] ?? 'it is well', facts: told.details ?? [] },
  ];
}

const fact = (label: string, value: HealthDetail['value'], unit?: 'time' | 'ms'): HealthDetail =>
  unit === undefined ? { label, value } : { label, value, unit };

/** How long a failure of the upstream still counts as news. */
const recentMs = 60_000;

function describeUpstream({ config, forwarder }: PartSources, upstream: UpstreamActivity): PartState {
  const { answers, lastAnswerMs, failures, lastFailureMs, lastFailure, failingSinceMs } = upstream;
  const isFailing = lastFailureMs > lastAnswerMs;
  const isRecent = failures > 0 && Date.now() - lastFailureMs < recentMs;
  const status = isFailing ? 'down' : isRecent ? 'limping' : 'ok';
  const words = {
    down: `the last request failed: ${lastFailure}`,
    limping: `it answers, but failed within the last minute: ${lastFailure}`,
    ok: answers === 0 ? 'not asked yet' : 'it answers',
  };
  return {
    id: 'upstream',
    title: 'Upstream',
    status,
    text: words[status],
    facts: [
      fact('address', config.upstream.url),
      fact('in flight', forwarder.inFlight),
      fact('waiting', forwarder.queued),
      fact('answers', answers),
      fact('failures', failures),
      fact('last answer', lastAnswerMs || null, 'time'),
      fact('last failure', lastFailureMs || null, 'time'),
      fact('failing since', failingSinceMs || null, 'time'),
    ],
  };
}

function describeKeys(source: KeySource): PartState {
  const known = source.status();
  const { kind, keys, unusableKeys, loads, failures, lastSuccessMs } = known;
  const fault = keyFaultText(known);
  const status = keys === 0 ? 'down' : fault === undefined ? 'ok' : 'limping';
  const words = {
    down: `no keys were ever had: ${fault ?? 'loading'}`,
    limping: `not refreshed, the last good keys are used: ${fault}`,
    ok: keys === 1 ? 'one usable key' : `${keys} usable keys`,
  };
  return {
    id: 'keys',
    title: 'Keys',
    status,
    text: words[status],
    facts: [
      fact('from', kind),
      fact('usable', keys),
      fact('unusable', unusableKeys),
      fact('loads', loads),
      fact('failures', failures),
      fact('last load', lastSuccessMs ?? null, 'time'),
    ],
  };
}

function describeStore(part: PartSources['redis']): PartState {
  const about = { id: 'store', title: 'Store' };
  if (part === undefined) {
    return {
      ...about,
      status: 'ok',
      text: 'in memory: for one process, gone with it',
      facts: [fact('kind', 'memory')],
    };
  }
  const { redis } = part;
  const { status, since } = redis.state();
  const { claims, facts: told, replication } = redis.status();
  const { usedBytes = 0, maxBytes = 0 } = told?.memory ?? {};
  const facts = [
    fact('kind', `Redis, ${redis.kind}`),
    fact('since', since, 'time'),
    fact(
      'memory',
      maxBytes === 0 ? megabytes(usedBytes) : `${megabytes(usedBytes)} of ${megabytes(maxBytes)}`,
    ),
    fact('claims', claims.made),
    fact('time of a claim', claims.made === 0 ? null : Math.round(claims.totalMs / claims.made), 'ms'),
  ];
  if (replication !== undefined) {
    facts.push(
      fact('replicas that confirmed', claims.lastConfirmed ?? null),
      fact('unconfirmed', claims.unconfirmed),
    );
  }
  const [reason] = part.health().reasons;
  if (reason === undefined) return { ...about, status: 'ok', text: 'Redis answers', facts };
  return { ...about, status: status === 'ready' ? 'limping' : 'down', text: reason, facts };
}

function megabytes(octets: number): string {
  return `${Math.round(octets / 1024 / 1024)} MiB`;
}

async function describeTags({ config, redis, tags, metrics }: PartSources): Promise<PartState> {
  const about = { id: 'entity-tags', title: 'Entity tags' };
  if (config.entityTags === false) return { ...about, status: 'off', text: 'switched off', facts: [] };
  const isAway = redis !== undefined && redis.redis.state().status !== 'ready';
  const reason = tags === false ? undefined : tags.health?.().reasons[0];
  const events = await metrics.eventCounts('entity-tags');
  const count = (...names: string[]) => names.reduce((sum, name) => sum + (events[name] ?? 0), 0);
  return {
    ...about,
    status: isAway || reason !== undefined ? 'limping' : 'ok',
    text: isAway
      ? 'reads go on without tags, writes to tagged resources get 503'
      : (reason?.replace('entity tags: ', '') ?? 'tags are tracked'),
    facts: [
      fact('resources', config.entityTags.resources.map(({ member }) => member).join(', ')),
      fact('tagged reads', count('tagged')),
      fact('not modified', count('not-modified', 'fresh-not-modified')),
      fact('writes applied', count('applied')),
      fact('stale If-Match', count('precondition-failed')),
      fact('no If-Match', count('precondition-missing')),
      fact('busy', count('lease-busy')),
      fact('store away', count('store-unavailable')),
    ],
  };
}

function describeResolver(part: PartSources['resolver']): PartState {
  const about = { id: 'url-resolver', title: 'URL resolver' };
  if (part === false) return { ...about, status: 'off', text: 'switched off', facts: [] };
  const stats = part.resolver.stats();
  const { file, sharedAway } = stats;
  const isFileBad = file !== undefined && !file.isLastReloadGood;
  const text = isFileBad
    ? 'the last edit of the mapping file is not in force'
    : sharedAway
      ? 'shared copies are away; each process asks by itself'
      : 'it answers';
  const facts = [
    fact('entries', stats.entries),
    fact('hits', stats.hits + stats.notFoundHits + stats.sharedHits),
    fact('stale hits', stats.staleHits),
    fact('misses', stats.misses),
    fact('questions', stats.lookups),
    fact('failures', stats.failures),
  ];
  if (file !== undefined) facts.push(fact('file rows', file.rows), fact('from file', stats.fileAnswers));
  return { ...about, status: isFileBad || sharedAway ? 'limping' : 'ok', text, facts };
}

async function describeTokens({ config, metrics }: PartSources): Promise<PartState> {
  const about = { id: 'refresh-tokens', title: 'Refresh tokens' };
  if (config.refreshTokens === false) return { ...about, status: 'off', text: 'switched off', facts: [] };
  const events = Object.entries(await metrics.eventCounts('refresh-tokens'));
  return {
    ...about,
    status: 'ok',
    text:
      events.length === 0
        ? 'nothing seen yet'
        : config.mode === 'observe'
          ? 'life cycle is watched; nothing is refused'
          : 'life cycle is enforced',
    facts: events.map(([event, times]) => fact(event.replaceAll('-', ' '), times)),
  };
}
