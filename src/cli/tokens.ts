import { sharedTokens } from '../app/refresh-tokens.ts';
import { storeConnection } from '../app/store.ts';
import type { Config } from '../config/schema.ts';
import { connectRedis } from '../redis/connect-redis.ts';
import { RedisUnavailable } from '../redis/faults.ts';
import { createDigests } from '../refresh-tokens/token-digest.ts';
import type { TokenStore } from '../refresh-tokens/token-store.ts';
import type { SubjectDigest, TokenEntry } from '../refresh-tokens/token-values.ts';
import { badConfiguration, badUsage, type CommandIo, type CommonChoice, processIo } from './command-io.ts';
import { loadSettings } from './load-settings.ts';

/** Longest wait for Redis. */
const connectMs = 5_000;

interface Asked {
  readonly store: TokenStore;
  readonly subject: SubjectDigest | undefined;
  readonly asJson: boolean;
  readonly io: CommandIo;
}

const actions: Readonly<Record<string, (asked: Asked) => Promise<void>>> = {
  list,
  revoke,
  'purge-expired': purgeExpired,
};

/**
 * `list` prints the states of refresh tokens (digests, never tokens), `revoke` revokes all tokens of the user `subject`,
 * `purge-expired` deletes expired ones, even within the retention. All use the store of the configuration. `subject`: the
 * user's name as `auth.subject` reads it from access tokens. Exit codes: 0; 1 if it failed; 2 on bad usage; 78 for a
 * configuration with problems.
 */
export async function runTokens(
  action: string,
  options: CommonChoice & { readonly subject?: string },
  io: CommandIo = processIo,
): Promise<number> {
  const act = Object.hasOwn(actions, action) ? actions[action] : undefined;
  if (act === undefined) {
    io.err(`there is no such action; the actions are ${Object.keys(actions).join(', ')}`);
    return badUsage;
  }
  if (action === 'revoke' && !options.subject) {
    io.err('revoke needs --subject: the name of the user whose refresh tokens are revoked');
    return badUsage;
  }
  const loaded = await loadSettings(options.config, io);
  if (loaded === undefined) return badConfiguration;
  return withStore(loaded.config, io, async (store, digestOf) => {
    const subject = options.subject === undefined ? undefined : digestOf(options.subject);
    await act({ store, subject, asJson: options.json === true, io });
  });
}

async function withStore(
  config: Config,
  io: CommandIo,
  use: (store: TokenStore, digestOf: (subject: string) => SubjectDigest) => Promise<void>,
): Promise<number> {
  const { refreshTokens } = config;
  if (refreshTokens === false) {
    io.err('refreshTokens is false in this configuration: no refresh tokens are recorded');
    return 1;
  }
  const connection = storeConnection(config);
  if (connection === undefined) {
    io.err('store.url is `memory`: only the running process knows its refresh tokens; `tokens` needs Redis');
    return 1;
  }
  const redis = connectRedis({ ...connection, timeoutMs: Math.max(connection.timeoutMs, 1000) });
  try {
    if (!(await redis.ready(connectMs))) {
      const { cause } = redis.state();
      io.err(
        `store: Redis cannot be used (${cause?.text ?? 'connection'}): look at store.url, store.tls and store.sentinelPassword`,
      );
      return 1;
    }
    await use(
      sharedTokens(refreshTokens, config.store, redis),
      createDigests(refreshTokens.digestKey).ofSubject,
    );
    return 0;
  } catch (fault) {
    if (!(fault instanceof RedisUnavailable)) throw fault;
    io.err(`the store cannot be used: ${fault.word}`);
    return 1;
  } finally {
    await redis.close();
  }
}

async function list({ store, subject, asJson, io }: Asked): Promise<void> {
  let count = 0;
  for await (const entry of store.list(subject)) {
    count += 1;
    io.out(asJson ? JSON.stringify(describe(entry)) : Object.values(describe(entry)).join('  '));
  }
  if (!asJson) io.out(`${count} refresh token${count === 1 ? '' : 's'}`);
}

async function revoke({ store, subject, asJson, io }: Asked): Promise<void> {
  if (subject === undefined) return;
  const noted = await store.noteRevocationOfAll(subject, 'command line');
  await store.concludeRevocationOfAll(subject, 'command line', noted, true);
  io.out(
    asJson ? JSON.stringify({ revoked: subject }) : `all refresh tokens of subject ${subject} are revoked`,
  );
}

async function purgeExpired({ store, subject, asJson, io }: Asked): Promise<void> {
  const purged = await store.purgeExpired(subject);
  io.out(
    asJson ? JSON.stringify({ purged }) : `deleted ${purged} expired refresh token${purged === 1 ? '' : 's'}`,
  );
}

/** One token: `--json` prints this object; otherwise its values make a line. */
function describe(entry: TokenEntry): Readonly<Record<string, string>> {
  const { token, subject, family, state, issuedAtMs, expiresAtMs, usedAtMs, revokedAtMs } = entry;
  return {
    token,
    state,
    subject: subject ?? 'unknown',
    family: family ?? 'unknown',
    issued: new Date(issuedAtMs).toISOString(),
    expires: new Date(expiresAtMs).toISOString(),
    ...(usedAtMs !== null && { used: new Date(usedAtMs).toISOString() }),
    ...(revokedAtMs !== null && { revoked: new Date(revokedAtMs).toISOString() }),
  };
}
