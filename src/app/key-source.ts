import type { Config } from '../config/schema.ts';
import { createFileKeySource, type FileKeySource } from '../protection/file-key-source.ts';
import { createJwksKeySource } from '../protection/jwks-key-source.ts';
import type { KeySource } from '../protection/key-source.ts';
import { createSecretKeySource } from '../protection/secret-key-source.ts';

/** The one source of verification keys that the configuration names. */
export function createKeySource(
  { keys, algorithms }: Config['auth'],
  now: () => number,
): KeySource | FileKeySource {
  if ('jwks' in keys) return createJwksKeySource({ url: keys.jwks, algorithms, now });
  if ('files' in keys) return createFileKeySource({ files: keys.files, algorithms, now });
  return createSecretKeySource({ secret: keys.secret, algorithms });
}
