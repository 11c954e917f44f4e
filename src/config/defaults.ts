export const defaultConfigFiles = ['config/shopward.yaml', '/etc/shopward/shopward.yaml'] as const;
/** Octets of the largest configuration file. */
export const maxConfigBytes = 1024 * 1024;
/** Default address of the admin port. */
export const defaultAdmin = { host: '127.0.0.1', port: 8081 } as const;

/** Defaults of `url` with references, by section. A start does not derive the JSON Schema to find them. */
export const defaultUrls = {
  upstream: '${UPSTREAM_URL:-http://127.0.0.1:9000}',
  store: '${REDIS_URL:-memory}',
} as const;
