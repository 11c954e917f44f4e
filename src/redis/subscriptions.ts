import { Cluster } from 'ioredis';
import { type Client, type ClientOptions, closeClient, createClient } from './clients.ts';

/** The connection that hears channels: opened with the first of them, re-subscribed after every loss. */
export interface Subscriptions {
  subscribe(channel: string, onMessage: (message: string) => void, onReconnect?: () => void): () => void;
  close(): void;
}

interface Listener {
  readonly onMessage: (message: string) => void;
  readonly onReconnect: (() => void) | undefined;
}

const retryMs = 250;

export function createSubscriptions(options: ClientOptions): Subscriptions {
  const listeners = new Map<string, Set<Listener>>();
  /** Channels that were confirmed once: a later confirmation means that messages may have been missed. */
  const confirmed = new Set<string>();
  let client: Client | undefined;
  let retry: NodeJS.Timeout | undefined;

  const open = (): Client => {
    // ioredis' own re-subscription tells nobody when it is done: ours confirms each channel on every new connection.
    const opened = createClient({ ...options, autoResubscribe: false });
    opened.on('error', () => {});
    opened.on('message', (channel: string, message: string) => {
      for (const listener of listeners.get(channel) ?? []) listener.onMessage(message);
    });
    opened.on('ready', subscribeAll);
    if (opened instanceof Cluster) {
      // The Cluster's subscriber connection moves between nodes without a word.
      opened.on('+node', subscribeAll);
      opened.on('-node', subscribeAll);
    }
    return opened;
  };

  const subscribeAll = () => {
    for (const channel of listeners.keys()) subscribeOne(channel);
  };

  const subscribeOne = (channel: string) => {
    client?.subscribe(channel).then(
      () => {
        if (!confirmed.has(channel)) {
          confirmed.add(channel);
          return;
        }
        for (const listener of listeners.get(channel) ?? []) listener.onReconnect?.();
      },
      () => {
        // Not connected: `ready` comes. Connected but refused: ask again.
        if (client?.status !== 'ready' || retry !== undefined) return;
        retry = setTimeout(() => {
          retry = undefined;
          subscribeAll();
        }, retryMs);
        retry.unref();
      },
    );
  };

  return {
    subscribe(channel, onMessage, onReconnect) {
      const listener: Listener = { onMessage, onReconnect };
      const known = listeners.get(channel);
      if (known === undefined) listeners.set(channel, new Set([listener]));
      else known.add(listener);
      if (client === undefined) client = open();
      else if (known === undefined && client.status === 'ready') subscribeOne(channel);
      return () => {
        const left = listeners.get(channel);
        left?.delete(listener);
        if (left?.size !== 0) return;
        listeners.delete(channel);
        confirmed.delete(channel);
        client?.unsubscribe(channel).catch(() => {});
      };
    },
    close() {
      clearTimeout(retry);
      if (client !== undefined) closeClient(client);
    },
  };
}
