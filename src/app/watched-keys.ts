import { readFile } from 'node:fs/promises';
import { FileKeySource } from '../access/file-key-source.ts';
import { JwksKeySource } from '../access/jwks-key-source.ts';
import type { KeySource } from '../access/key-source.ts';
import { SecretKeySource } from '../access/secret-key-source.ts';
import type { Config } from '../config/schema.ts';
import { FileWatch } from '../config/watched-file.ts';
import type { Log } from '../telemetry/log.ts';
import { keyFaultText } from './key-fault-text.ts';

export interface WatchedKeys {
  readonly source: KeySource;
  /** Gets the first keys, and follows their files from there. Rejects as the source does. */
  start(): Promise<void>;
  /** Gets the keys anew, now (SIGHUP). */
  reload(): Promise<void>;
  /** A new `auth.keys.secret`; of no effect for keys of another kind. */
  useSecret(secret: string | undefined): void;
  close(): void;
}

/** The one source of verification keys that the configuration names; key files are followed. */
export function createWatchedKeys(
  { keys, algorithms }: Config['auth'],
  now: () => number,
  log: Log,
): WatchedKeys {
  if ('secret' in keys) {
    const source = new SecretKeySource({ secret: keys.secret, algorithms });
    let current = keys.secret;
    return {
      source,
      start: () => source.start(),
      reload: async () => {},
      useSecret(secret) {
        if (secret === undefined || secret === current) return;
        source.replace(secret);
        current = secret;
      },
      close: () => source.close(),
    };
  }
  if ('jwks' in keys) {
    const source = new JwksKeySource({ url: keys.jwks, algorithms, now, onLoad: createLoadLog(log) });
    source.onChange(() => {
      log.info({ event: 'keys-reloaded', keys: source.status().keys }, 'there are new keys');
    });
    return {
      source,
      start: () => source.start(),
      reload: () => source.refresh(),
      useSecret: () => {},
      close: () => source.close(),
    };
  }
  const source = new FileKeySource({ files: keys.files, algorithms, now });
  const reload = async () => {
    const problems = await source.reload();
    if (problems.length === 0)
      log.info({ event: 'keys-reloaded', keys: source.status().keys }, 'keys were reloaded');
    else
      log.error({ event: 'keys-refused', problems }, 'keys were not reloaded; the last good ones are used');
  };
  const watches: FileWatch[] = [];
  return {
    source,
    async start() {
      // Read before the source reads: an edit in between is reported once too often, never missed.
      const known = await Promise.all(keys.files.map((file) => readFile(file).catch(() => undefined)));
      await source.start();
      for (const [i, file] of keys.files.entries()) {
        const bytes = known[i];
        watches.push(new FileWatch(file, () => void reload(), bytes && { known: bytes }));
      }
    },
    reload,
    useSecret: () => {},
    close: () => {
      for (const watch of watches) watch.close();
      source.close();
    },
  };
}

/** Says when a key set cannot be had, for another reason than before, and when it can again. */
function createLoadLog(log: Log): (error: string | undefined) => void {
  let reported: string | undefined;
  return (error) => {
    if (error === reported) return;
    reported = error;
    const text = keyFaultText({ lastError: error });
    if (text === undefined) log.info({ event: 'keys-back' }, 'the key set can be had again');
    else log.error({ event: 'keys-not-refreshed', reason: error }, `the key set cannot be had: ${text}`);
  };
}
