import { openRawConnection, type RawConnection, type RawResponse } from './raw-client.ts';

/** Sends requests one after the other over one connection, and opens a new one after `Connection: close`. */
export interface KeptClient {
  /** Skips interim responses. */
  exchange(bytes: string): Promise<RawResponse>;
  close(): void;
}

export function createKeptClient(port: number): KeptClient {
  let connection: RawConnection | undefined;
  return {
    exchange: async (bytes) => {
      connection ??= await openRawConnection(port);
      await connection.write(bytes);
      const method = /^\S*/.exec(bytes)?.[0];
      let response = await connection.readResponse(method);
      while (response.status < 200) response = await connection.readResponse(method);
      if (response.field('connection') === 'close') {
        connection.close();
        connection = undefined;
      }
      return response;
    },
    close: () => connection?.close(),
  };
}
