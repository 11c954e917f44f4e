export type ReceivedRequest = {
  readonly method: string;
  /** The request target as received. */
  readonly target: string;
  /** The method that the shop acted on, after a method override. */
  effectiveMethod: string;
  /** Such as `PATCH /carts/{id}`; `unmatched` if there is no such route. */
  route: string;
};

const mostRequests = 10_000;

/**
 * Requests that arrived at the shop, so that a test can assert that there were none. Requests for the key set do not count.
 */
export class Received {
  total = 0;
  /** Number of messages that were not valid HTTP. */
  malformed = 0;
  readonly byRoute = new Map<string, number>();
  /** The latest requests, oldest first. */
  readonly requests: ReceivedRequest[] = [];

  clear(): void {
    this.total = 0;
    this.malformed = 0;
    this.requests.length = 0;
    this.byRoute.clear();
  }

  arrive(method: string, target: string): ReceivedRequest {
    this.total += 1;
    const request = { method, target, effectiveMethod: method, route: 'unmatched' };
    if (this.requests.push(request) > mostRequests) this.requests.shift();
    return request;
  }

  countRoute(request: ReceivedRequest, effectiveMethod: string, route: string): void {
    Object.assign(request, { effectiveMethod, route });
    this.byRoute.set(route, (this.byRoute.get(route) ?? 0) + 1);
  }
}
