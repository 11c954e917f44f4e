import { randomUUID } from 'node:crypto';

/** A new id for a request that brought none: 122 random bits; node draws them in batches, so it is cheap. */
export function generateRequestId(): string {
  return randomUUID();
}

/** Whether a trusted peer's X-Request-Id is fit for logs and for the upstream: 1 to 128 plain characters. */
export function isRequestId(sent: string): boolean {
  return /^[A-Za-z0-9._~:/+=@-]{1,128}$/.test(sent);
}
