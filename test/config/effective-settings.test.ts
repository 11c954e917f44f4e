import { describe, expect, it } from 'vitest';
import { effectiveSettings } from '../../src/config/effective-settings.ts';
import { configJsonSchema, type JsonSchema } from '../../src/config/json-schema.ts';
import { validateConfig } from '../../src/config/load.ts';

const planted = {
  'auth.keys.secret': 'planted-hmac-secret-of-more-than-32-octets',
  'auth.introspection.clientSecret': 'planted-client-secret',
  'admin.token': 'planted-admin-token',
  'refreshTokens.digestKey': 'planted-digest-key-0',
  'store.sentinelPassword': 'planted-sentinel-password',
  'store.url': 'planted-redis-password',
};

const configOf = (more: object = {}): unknown => {
  const written = {
    auth: {
      keys: { secret: planted['auth.keys.secret'] },
      algorithms: ['HS256'],
      introspection: {
        url: 'https://id.example/introspect?key=planted-in-a-query',
        clientId: 'shopward',
        clientSecret: planted['auth.introspection.clientSecret'],
      },
    },
    admin: { token: planted['admin.token'] },
    refreshTokens: { digestKey: planted['refreshTokens.digestKey'] },
    store: {
      url: `redis+sentinel://planted-redis-user:${planted['store.url']}@one:1,two:2/name/3`,
      sentinelPassword: planted['store.sentinelPassword'],
    },
    ...more,
  };
  const { problems } = validateConfig(written);
  expect(problems.filter(({ severity }) => severity !== 'warning')).toEqual([]);
  return written;
};
const settingOf = (config: unknown, name: string) =>
  effectiveSettings(config).find((setting) => setting.name === name);

/** Every setting of the schema by its name. */
function leaves(schema: JsonSchema, name = ''): (readonly [string, JsonSchema])[] {
  const children = Object.entries(schema.properties ?? {}).flatMap(([key, child]) =>
    leaves(child, name === '' ? key : `${name}.${key}`),
  );
  const inner = [...(schema.anyOf ?? []), ...(schema.items ? [schema.items] : [])];
  return [[name, schema], ...children, ...inner.flatMap((one) => leaves(one, name))];
}

describe('the configuration for people', () => {
  it('holds no secret, and says which ones are set', () => {
    const config = configOf({ log: {}, rejections: {} });
    const text = JSON.stringify(effectiveSettings(config));
    expect(text).not.toMatch(/planted/);
    for (const name of Object.keys(planted)) {
      expect(settingOf(config, name), name).toMatchObject({ isSecret: true });
      expect(settingOf(config, name)?.value, name).toContain('(secret, set)');
    }
    expect(settingOf(config, 'store.url')?.value).toBe('redis+sentinel://(secret, set)@one:1,two:2/name/3');
  });

  it('holds none of several issuers', () => {
    const secrets = ['planted-hmac-secret-of-more-than-32-octets', 'planted-client-secret'];
    const introspection = {
      url: 'https://b.example/?planted-query',
      clientId: 'id',
      clientSecret: secrets[1],
    };
    const config = configOf({
      auth: {
        issuers: [
          { issuer: 'https://a.example', algorithms: ['HS256'], keys: { secret: secrets[0] } },
          { issuer: 'https://b.example', introspection },
        ],
      },
    });
    const value = settingOf(config, 'auth.issuers')?.value ?? '';
    expect(JSON.stringify(effectiveSettings(config))).not.toMatch(/planted/);
    expect(value).toContain('issuer https://a.example, keys.secret (secret, set), algorithms HS256;');
    expect(value).toContain('introspection.clientSecret (secret, set)');
  });

  it('cuts a secret that stands in another setting too, and what a URL holds beside its place', () => {
    const config = configOf({
      auth: {
        keys: { jwks: 'https://id.example/keys?api-key=planted-in-a-query' },
        issuer: 'planted-admin-token',
      },
    });
    expect(JSON.stringify(effectiveSettings(config))).not.toMatch(/planted/);
    expect(settingOf(config, 'auth.keys.jwks')?.value).toBe('https://id.example/keys?(secret, set)');
  });

  it('has a mark, or a word here, for every key that sounds like a secret', () => {
    const sounds = leaves(configJsonSchema()).filter(([name]) =>
      /secret|token$|password|passphrase|credential|[a-z]key$/i.test(name.split('.').at(-1) ?? ''),
    );
    const unmarked = sounds.filter(([, { secret }]) => secret === undefined).map(([name]) => name);
    const named: Readonly<Record<string, string>> = {
      'cors.credentials': 'yes or no',
      'refreshTokens.endpoints.fields.accessToken': 'the name of a field',
      'refreshTokens.endpoints.fields.refreshToken': 'the name of a field',
    };
    expect(unmarked.filter((name) => named[name] === undefined)).toEqual([]);
    const marked = leaves(configJsonSchema()).filter(([, { secret }]) => secret !== undefined);
    expect(marked.map(([name]) => name)).toEqual(expect.arrayContaining(Object.keys(planted)));
    // A new mark wants a planted value above.
    expect(marked.map(([name]) => name).filter((name) => !Object.hasOwn(planted, name))).toEqual([
      // Of several issuers: the test above.
      'auth.issuers.keys.secret',
      'auth.issuers.introspection.clientSecret',
    ]);
  });

  it('writes values as a file would, and tells defaults apart', () => {
    const config = configOf({ limits: { requestBody: '3MiB', bodyTimeout: '90s' } });
    expect(settingOf(config, 'limits.requestBody')).toMatchObject({ value: '3MiB', isDefault: false });
    expect(settingOf(config, 'limits.bodyTimeout')).toMatchObject({ value: '90s', isDefault: false });
    expect(settingOf(config, 'limits.requestHeaders')).toMatchObject({ value: '64KiB', isDefault: true });
    expect(settingOf(config, 'mode')).toMatchObject({ value: 'enforce', isDefault: true });
  });
});
