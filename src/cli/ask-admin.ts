import http from 'node:http';

export interface AdminReply {
  /** 0: nobody answered. */
  readonly status: number;
  readonly body: string;
}

/** One request to the admin port of the proxy that runs on this machine. Never rejects. */
export function askAdmin(
  admin: { readonly host: string; readonly port: number; readonly token?: string | undefined },
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
): Promise<AdminReply> {
  const host = admin.host === '0.0.0.0' ? '127.0.0.1' : admin.host === '::' ? '::1' : admin.host;
  const headers: http.OutgoingHttpHeaders = { 'Content-Type': 'application/json', Host: 'localhost' };
  if (admin.token !== undefined) headers.Authorization = `Bearer ${admin.token}`;
  return new Promise((resolve) => {
    const request = http.request(
      { host, port: admin.port, path, method, headers, timeout: 5_000 },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('close', () =>
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }),
        );
      },
    );
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve({ status: 0, body: '' }));
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
