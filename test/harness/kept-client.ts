import { openRawConnection, type RawConnection, type RawResponse } from './raw-client.ts';

export type KeptClient = ReturnType<typeof createKeptClient>;

/** Sends requests one after the other over one connection, and opens a new one after `Connection: close`. */
export function createKeptClient(port: number) {
  let connection: RawConnection | undefined;
  return {
    /** Skips interim responses. */
    exchange: async (bytes: string): Promise<RawResponse> => {
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
