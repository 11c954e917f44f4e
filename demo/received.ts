export type ReceivedRequest = {
  readonly method: string;
  /** The request target as it stood on the wire. */
  readonly target: string;
  /** Method after a method override; what the shop acted on. */
  effectiveMethod: string;
  /** Such as `PATCH /carts/{id}`; `unmatched` when no route was found. */
  route: string;
};

/** What arrived at the shop, so that a test can assert that nothing did. The key set and the control address do not count. */
export type Received = {
  readonly total: number;
  /** Bytes that were no HTTP request. */
  readonly malformed: number;
  readonly byRoute: ReadonlyMap<string, number>;
  /** The last ones, oldest first. */
  readonly requests: readonly ReceivedRequest[];
  clear(): void;
};

export type ReceivedLog = Received & {
  arrive(method: string, target: string): ReceivedRequest;
  countRoute(request: ReceivedRequest, effectiveMethod: string, route: string): void;
  countMalformed(): void;
};

export function createReceivedLog(capacity: number): ReceivedLog {
  let total = 0;
  let malformed = 0;
  let requests: ReceivedRequest[] = [];
  const byRoute = new Map<string, number>();
  return {
    get total() {
      return total;
    },
    get malformed() {
      return malformed;
    },
    get requests() {
      return requests.slice(-capacity);
    },
    byRoute,
    clear() {
      total = 0;
      malformed = 0;
      requests = [];
      byRoute.clear();
    },
    arrive(method, target) {
      total += 1;
      const request = { method, target, effectiveMethod: method, route: 'unmatched' };
      requests.push(request);
      if (requests.length > capacity * 2) requests = requests.slice(-capacity);
      return request;
    },
    countRoute(request, effectiveMethod, route) {
      request.effectiveMethod = effectiveMethod;
      request.route = route;
      byRoute.set(route, (byRoute.get(route) ?? 0) + 1);
    },
    countMalformed() {
      malformed += 1;
    },
  };
}
