/** What holds before anything is read, for those who load no more than that. */

export const defaultConfigFiles = ['config/shopward.yaml', '/etc/shopward/shopward.yaml'] as const;
/** Octets of a configuration file, at most. */
export const maxConfigBytes = 1024 * 1024;
/** Where the admin port listens when the configuration says nothing. */
export const defaultAdmin = { host: '127.0.0.1', port: 8081 } as const;

/**
 * Defaults that are references themselves, by section and key: they hold also where the key is left out. In a table, so
 * that a start need not derive the JSON Schema to find them.
 */
export const referenceDefaults = {
  upstream: { url: '${UPSTREAM_URL:-http://127.0.0.1:9000}' },
  store: { url: '${REDIS_URL:-memory}' },
} as const;
