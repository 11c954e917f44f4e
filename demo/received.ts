export type ReceivedRequest = {
  readonly method: string;
  /** The request target as it stood on the wire. */
  readonly target: string;
  /** Method after a method override; what the shop acted on. */
  effectiveMethod: string;
  /** Such as `PATCH /carts/{id}`; `unmatched` when no route was found. */
  route: string;
};

const mostRequests = 10_000;

/** What arrived at the shop, so that a test can assert that nothing did. The key set does not count. */
export class Received {
  total = 0;
  /** Bytes that were no HTTP request. */
  malformed = 0;
  readonly byRoute = new Map<string, number>();
  /** The last ones, oldest first. */
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
