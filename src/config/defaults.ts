export const defaultConfigFiles = ['config/shopward.yaml', '/etc/shopward/shopward.yaml'] as const;
/** Octets of the largest configuration file. */
export const maxConfigBytes = 1024 * 1024;
/** Default address of the admin port. */
export const defaultAdmin = { host: '127.0.0.1', port: 8081 } as const;

/**
 * Defaults that contain references, by section and key. A table, so that a start need not derive the JSON Schema to find them.
 */
export const referenceDefaults = {
  upstream: { url: '${UPSTREAM_URL:-http://127.0.0.1:9000}' },
  store: { url: '${REDIS_URL:-memory}' },
} as const;
