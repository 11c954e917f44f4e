import type { SettingProblem } from '../issues.ts';
import { isLinkLocal, isLoopback, parseOrigin } from '../origin.ts';
import type { Config } from '../schema.ts';

/** The admin port shows and changes what the proxy decides: off loopback it must know who asks, and by which name. */
export function adminProblems({ admin }: Pick<Config, 'admin'>): SettingProblem[] {
  if (admin === false || isLoopback(admin.host)) return [];
  const problems: SettingProblem[] = [];
  if (admin.token === undefined) {
    problems.push({
      path: ['admin', 'token'],
      text: 'is required when admin.host is not a loopback address',
    });
  }
  if (admin.hosts.length === 0) {
    const text =
      'must name the hosts by which the admin port is addressed when admin.host is not a loopback address';
    problems.push({ path: ['admin', 'hosts'], text });
  }
  return problems;
}

export function portProblems({ admin, listen }: Pick<Config, 'admin' | 'listen'>): SettingProblem[] {
  if (admin === false || admin.port === 0 || admin.port !== listen.port) return [];
  return [{ path: ['admin', 'port'], text: 'must not be the port of the public listener' }];
}

export const linkLocalText =
  'is a link-local address, where clouds hand out credentials of machines: is that meant?';

export function upstreamWarnings({ upstream }: Pick<Config, 'upstream'>): SettingProblem[] {
  const origin = parseOrigin(upstream.url);
  if (origin === undefined || !isLinkLocal(origin.hostname)) return [];
  return [{ path: ['upstream', 'url'], text: linkLocalText, severity: 'warning' }];
}

/** A proxy that is its own upstream answers nothing, and takes all connections doing so. */
export function loopProblems({ listen, upstream }: Pick<Config, 'listen' | 'upstream'>): SettingProblem[] {
  const origin = parseOrigin(upstream.url);
  const hosts = ['0.0.0.0', '::', listen.host];
  if (origin === undefined || listen.port !== origin.port) return [];
  if (!isLoopback(origin.hostname) && !hosts.includes(origin.hostname)) return [];
  return [{ path: ['upstream', 'url'], text: 'is the public listener itself (listen.port)' }];
}

/** A failover to a replica that had not heard of a claim yet lets a second writer pass. */
export function failoverWarnings({ store }: Pick<Config, 'store'>): SettingProblem[] {
  if (store.url.kind !== 'sentinel' || store.replicas > 0) return [];
  const text =
    'is 0 behind Sentinel: a failover may forget the claim of a write under way, and an update can be lost';
  return [{ path: ['store', 'replicas'], text, severity: 'warning' }];
}

export function workerProblems({ workers, store }: Pick<Config, 'workers' | 'store'>): SettingProblem[] {
  if (workers === 1 || store.url.kind !== 'memory') return [];
  return [
    { path: ['workers'], text: 'needs a shared store (store.url): the memory store belongs to one process' },
  ];
}

export function modeProblems({ mode }: Pick<Config, 'mode'>): SettingProblem[] {
  if (mode === 'enforce') return [];
  return [
    {
      path: ['mode'],
      text: 'is observe: refusals are logged and counted, not enforced',
      severity: 'warning',
    },
  ];
}
