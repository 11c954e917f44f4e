import type { Config } from '../config/schema.ts';
import { watchFile } from '../config/watch.ts';
import { createFileKeySource } from '../protection/file-key-source.ts';
import { createJwksKeySource } from '../protection/jwks-key-source.ts';
import type { KeySource } from '../protection/key-source.ts';
import { createSecretKeySource } from '../protection/secret-key-source.ts';
import type { Log } from '../telemetry/log.ts';

export interface LiveKeys {
  readonly source: KeySource;
  /** Gets the keys anew, now (SIGHUP). */
  reload(): Promise<void>;
  close(): void;
}

/** The one source of verification keys that the configuration names; key files are followed. */
export function createLiveKeys({ keys, algorithms }: Config['auth'], now: () => number, log: Log): LiveKeys {
  if ('secret' in keys) {
    const source = createSecretKeySource({ secret: keys.secret, algorithms });
    return { source, reload: async () => {}, close: () => source.close() };
  }
  if ('jwks' in keys) {
    const source = createJwksKeySource({ url: keys.jwks, algorithms, now });
    return { source, reload: () => source.refresh(), close: () => source.close() };
  }
  const source = createFileKeySource({ files: keys.files, algorithms, now });
  const reload = async () => {
    const problems = await source.reload();
    if (problems.length === 0)
      log.info({ event: 'keys-reloaded', keys: source.status().keys }, 'keys were reloaded');
    else
      log.error({ event: 'keys-refused', problems }, 'keys were not reloaded; the last good ones are used');
  };
  const watches = keys.files.map((file) => watchFile(file, () => void reload()));
  return {
    source,
    reload,
    close: () => {
      for (const watch of watches) watch.close();
      source.close();
    },
  };
}
