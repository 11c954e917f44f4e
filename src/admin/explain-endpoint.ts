import { fieldsOf, type JsonEndpoint } from './admin-endpoint.ts';

/** `POST /api/explain` with `{"method": …, "url": …}`: what would happen to that request under the list in force. */
export function createExplainEndpoint({
  explain,
}: {
  readonly explain: (method: string, url: string) => unknown;
}): JsonEndpoint {
  return {
    method: 'POST',
    path: '/api/explain',
    run({ body }) {
      const { method, url } = fieldsOf(body);
      const isMethod = typeof method === 'string' && /^[A-Za-z]{1,20}$/.test(method);
      if (!isMethod || typeof url !== 'string' || url === '' || url.length > 16_384) {
        return { status: 400, body: { error: '{"method": text, "url": text} is needed' } };
      }
      return { status: 200, body: explain(method.toUpperCase(), url) };
    },
  };
}
