import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import { freePort } from '../../harness/free-port.ts';
import { listen } from '../../harness/listen.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { type Shopward, startShopward } from '../../harness/shopward.ts';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const tracestate = 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE';

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number | string };
}
interface OtlpSpan {
  readonly traceId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly attributes: readonly Attribute[];
}
interface OtlpPoint {
  readonly attributes: readonly Attribute[];
  readonly asDouble?: number;
  readonly asInt?: number;
  readonly count?: number;
  readonly bucketCounts?: readonly number[];
  readonly explicitBounds?: readonly number[];
}
interface OtlpMetric extends Partial<Record<'sum' | 'gauge' | 'histogram', { dataPoints: OtlpPoint[] }>> {
  readonly name: string;
}
interface Exported {
  readonly resource: { readonly attributes: readonly Attribute[] };
  readonly scopeSpans?: readonly { readonly spans: readonly OtlpSpan[] }[];
  readonly scopeMetrics?: readonly { readonly metrics: readonly OtlpMetric[] }[];
}

/** Receives OTLP over HTTP in JSON, and sorts it by path. */
class Collector {
  readonly traces: Exported[] = [];
  readonly metrics: Exported[] = [];
  readonly #server: Server = createServer(async (incoming, response) => {
    const body = Buffer.concat(await incoming.toArray()).toString();
    if (incoming.headers['content-type'] !== 'application/json') return void response.writeHead(415).end();
    if (incoming.url === '/v1/traces') this.traces.push(...JSON.parse(body).resourceSpans);
    else if (incoming.url === '/v1/metrics') this.metrics.push(...JSON.parse(body).resourceMetrics);
    else return void response.writeHead(404).end();
    response.setHeader('Content-Type', 'application/json');
    response.end('{}');
  });

  async listen(port = 0): Promise<number> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  get spans(): OtlpSpan[] {
    return this.traces.flatMap(({ scopeSpans = [] }) => scopeSpans.flatMap(({ spans }) => spans));
  }

  /** The points of the metric in the latest message with it. */
  pointsOf(name: string): OtlpPoint[] {
    const all = this.metrics.flatMap(({ scopeMetrics = [] }) =>
      scopeMetrics.flatMap(({ metrics }) => metrics),
    );
    const { sum, gauge, histogram } = all.findLast((metric) => metric.name === name) ?? {};
    return (sum ?? gauge ?? histogram)?.dataPoints ?? [];
  }
}

const textOf = (attributes: readonly Attribute[], name: string) => {
  const { stringValue, intValue } = attributes.find(({ key }) => key === name)?.value ?? {};
  return stringValue ?? (intValue === undefined ? undefined : Number(intValue));
};

describe('telemetry.otlp', () => {
  let collector: Collector;
  let upstream: RecordingUpstream;
  let shopward: Shopward | undefined;

  beforeEach(async () => {
    collector = new Collector();
    upstream = await startRecordingUpstream(() => answer());
  });
  afterEach(async () => {
    await shopward?.kill();
    await upstream.close();
    await collector.close();
  });

  const start = async (port: number, more: object = {}, env: Readonly<Record<string, string>> = {}) => {
    shopward = await startShopward({
      upstream: `http://127.0.0.1:${upstream.port}`,
      rows: ['GET /carts/{cart_id}'],
      config: { telemetry: { otlp: { endpoint: `http://127.0.0.1:${port}`, ...more } } },
      env,
    });
    return shopward;
  };
  const get = async ({ url }: Shopward, path: string, headers = {}) => {
    const response = await fetch(`${url}${path}`, { headers });
    await response.arrayBuffer();
    return response.status;
  };

  it('sends a span for each exchange, and the metrics; sends the rest when it stops', async () => {
    const running = await start(await collector.listen(), {}, { OTEL_SERVICE_NAME: 'front' });
    expect(await get(running, '/carts/7?token=s3cret', { traceparent })).toBe(401);
    expect(await get(running, '/open', { tracestate })).toBe(200);
    await running.stop();

    expect(collector.spans).toHaveLength(2);
    const [refused, forwarded] = ['GET /carts/{cart_id}', 'GET'].map((span) =>
      collector.spans.find(({ name }) => name === span),
    );
    expect(refused).toMatchObject({
      traceId: '0af7651916cd43dd8448eb211c80319c',
      parentSpanId: 'b7ad6b7169203331',
    });
    expect(refused?.attributes.map(({ key }) => [key, textOf(refused.attributes, key)])).toEqual(
      expect.arrayContaining([
        ['http.request.method', 'GET'],
        ['http.route', '/carts/{cart_id}'],
        ['http.response.status_code', 401],
        ['url.path', '/carts/7'],
        ['error.type', 'access-token-missing'],
      ]),
    );
    expect(textOf(forwarded?.attributes ?? [], 'shopward.decision')).toBe('forwarded');
    expect(upstream.bytes()).toContain(`tracestate: ${tracestate}\r\n`);
    expect(forwarded?.traceId).not.toBe(refused?.traceId);
    expect(JSON.stringify(collector.traces)).not.toContain('s3cret');

    for (const { resource } of [...collector.traces, ...collector.metrics]) {
      expect(textOf(resource.attributes, 'service.name')).toBe('front');
      expect(textOf(resource.attributes, 'service.instance.id')).toMatch(/^[\da-f-]{36}$/);
    }
    const [refusals] = collector.pointsOf('shopward_rejections');
    expect(textOf(refusals?.attributes ?? [], 'rejection')).toBe('access-token-missing');
    const durations = collector.pointsOf('http_server_request_duration_seconds');
    const byStatus = durations.map(({ attributes, count, bucketCounts = [], explicitBounds = [] }) => [
      textOf(attributes, 'http_response_status_code'),
      count,
      bucketCounts.reduce((sum, own) => sum + Number(own), 0),
      bucketCounts.length - explicitBounds.length,
    ]);
    expect(byStatus.toSorted()).toEqual([
      [200, 1, 1, 1],
      [401, 1, 1, 1],
    ]);
  });

  it('with a ratio of 0, traces only requests that the client traces', async () => {
    const running = await start(await collector.listen(), { sampleRatio: 0 });
    await get(running, '/not-traced');
    await get(running, '/traced', { traceparent });
    for (const odd of ['00-0-0-01', `${traceparent}0`, traceparent.replace(/^00/, 'ff')])
      await get(running, '/odd', { traceparent: odd });
    await running.stop();
    expect(collector.spans.map(({ parentSpanId }) => parentSpanId)).toEqual(['b7ad6b7169203331']);
  });

  it('stops beside a collector that never answers', async () => {
    const silent = createTcpServer((socket) => socket.on('error', () => {}).resume());
    const { port, close } = await listen(silent);
    onTestFinished(close);
    const running = await start(port, {}, { OTEL_EXPORTER_OTLP_TIMEOUT: '600000' });
    await get(running, '/open');
    await running.stop();
    expect(running.exitCode).toBe(0);
  });

  it('while the collector is away, serves on and reports it; sends again when it is back', async () => {
    const port = await freePort();
    const running = await start(port);
    const readyz = async () => (await fetch(`${running.adminUrl}/readyz`)).text();
    await eventually('a report of the failure', async () => {
      expect(await get(running, '/open')).toBe(200);
      return (await readyz()).includes('takes no telemetry') ? true : undefined;
    });
    await running.waitForLog(({ msg }) => msg === 'telemetry cannot be sent');
    await collector.listen(port);
    await eventually('an end of the failure', async () => {
      await get(running, '/open');
      return (await readyz()).includes('takes no telemetry') ? undefined : true;
    });
    expect(collector.spans.length).toBeGreaterThan(0);
    await collector.close();
    await get(running, '/open');
    await running.stop();
  });
});
