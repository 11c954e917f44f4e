import { hash } from 'node:crypto';
import type { RedisScript } from './redis.ts';

/** Names a Lua script; `name` is for people only. */
export function defineScript(name: string, lua: string): RedisScript {
  return { name, lua, sha1: hash('sha1', lua, 'hex') };
}
