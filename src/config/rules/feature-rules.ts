import { entityTagTimes } from '../../entity-tags/times.ts';
import type { SettingProblem } from '../issues.ts';
import type { Config } from '../schema.ts';

type EntityTagSections = Pick<Config, 'entityTags' | 'store' | 'upstream'>;

/** Relations of times without which an update can be lost: a late write must land before its lease is over. */
export function entityTagTimeProblems({ entityTags, store, upstream }: EntityTagSections): SettingProblem[] {
  if (entityTags === false) return [];
  const { lease, sendBy, wait } = entityTags;
  const times = entityTagTimes({
    leaseMs: lease,
    sendByMs: sendBy,
    storeTimeoutMs: store.timeout,
    responseTimeoutMs: upstream.responseTimeout,
  });
  const problems: SettingProblem[] = [];
  if ('problem' in times) {
    const text = 'must be longer than entityTags.sendBy, store.timeout and 0.5s together';
    problems.push({ path: ['entityTags', 'lease'], text });
  }
  if (wait > lease)
    problems.push({ path: ['entityTags', 'wait'], text: 'must not be longer than entityTags.lease' });
  return problems;
}

export function entityTagResourceProblems({ entityTags }: Pick<Config, 'entityTags'>): SettingProblem[] {
  if (entityTags === false) return [];
  const seen = new Set<string>();
  return entityTags.resources.flatMap(({ collection, member }, index) => {
    const path = ['entityTags', 'resources', index];
    const problems: SettingProblem[] = [];
    if (!member.startsWith(`${collection}/{`) || member.indexOf('/', collection.length + 1) >= 0) {
      problems.push({
        path: [...path, 'member'],
        text: `must be the collection and one {name}, such as ${collection}/{id}`,
      });
    }
    if (seen.has(shape(member)))
      problems.push({ path: [...path, 'member'], text: 'names a resource that an earlier row names' });
    seen.add(shape(member));
    return problems;
  });
}

export function resolverProblems(
  config: Pick<Config, 'urlResolver' | 'protectedResourcesPath'>,
): SettingProblem[] {
  const { urlResolver, protectedResourcesPath } = config;
  if (urlResolver === false) return [];
  const problems: SettingProblem[] = [];
  if (!urlResolver.locales.includes(urlResolver.defaultLocale)) {
    problems.push({ path: ['urlResolver', 'defaultLocale'], text: 'must be one of urlResolver.locales' });
  }
  if (urlResolver.path.toLowerCase() === protectedResourcesPath.toLowerCase()) {
    problems.push({ path: ['urlResolver', 'path'], text: 'must not be the path of protectedResourcesPath' });
  }
  return problems;
}

/** With `forwardHost` each host is a store, and what is asked of a store that is not configured is never kept. */
export function resolverWarnings({
  urlResolver,
  upstream,
}: Pick<Config, 'urlResolver' | 'upstream'>): SettingProblem[] {
  if (urlResolver === false || !urlResolver.source.upstream) return [];
  if (!upstream.forwardHost || urlResolver.stores.length > 0) return [];
  const text =
    'is empty while upstream.forwardHost is true: name the hosts of the shop, or nothing is cached';
  return [{ path: ['urlResolver', 'stores'], text, severity: 'warning' }];
}

export function refreshTokenProblems({ refreshTokens }: Pick<Config, 'refreshTokens'>): SettingProblem[] {
  if (refreshTokens === false) return [];
  const seen = new Set<string>();
  const found = refreshTokens.endpoints.flatMap(({ kind, method, path: template }, index) => {
    const path = ['refreshTokens', 'endpoints', index];
    const problems: SettingProblem[] = [];
    if (kind === 'revoke' && !template.endsWith('}')) {
      problems.push({ path: [...path, 'path'], text: 'must end with a {name}: the refresh token to revoke' });
    }
    const key = `${kind} ${method} ${shape(template)}`;
    if (seen.has(key)) problems.push({ path, text: 'names an endpoint that an earlier row names' });
    seen.add(key);
    return problems;
  });
  if (refreshTokens.replay === 'end-family' && refreshTokens.leeway === 0) {
    const text =
      'is 0s while replay is end-family: two tabs that send one token sign their user out; 10s spares them';
    found.push({ path: ['refreshTokens', 'leeway'], text, severity: 'warning' });
  }
  return found;
}

function shape(template: string): string {
  return template.replace(/\{[^{}]*\}/g, '{}').toLowerCase();
}
