import { fieldValue } from '../http/field-list.ts';
import { reject } from '../http/rejection.ts';
import { Pipeline, type PipelineDependencies } from '../proxy/pipeline.ts';

interface AuthorizeOptions extends Pick<PipelineDependencies, 'canonicalise' | 'rules' | 'authenticate'> {
  readonly identityFields: readonly string[];
}

/** Filters that need neither the body nor the shop's answer. */
export const filtersOfQuestions: readonly string[] = ['rate-limits'];

/** Decides about requests that a front forwards itself, with the plan of the public port. */
export function createAuthorizePipeline({ rules, identityFields, ...steps }: AuthorizeOptions) {
  const names = ['Authorization', ...identityFields];
  return new Pipeline({
    ...steps,
    rules: {
      endpoints: [],
      list: rules.list,
      get filters() {
        return rules.filters.filter(({ name }) => filtersOfQuestions.includes(name));
      },
      get observe() {
        return rules.observe;
      },
    },
    readBody: () => Promise.resolve(reject('unexpected-body')),
    forward(exchange, request) {
      // shopward removed a token from the query; the front would still forward it.
      if (request.query !== exchange.request?.query) {
        return exchange.refuse(reject('bad-request-target', { reason: 'token-in-query' }));
      }
      // An empty field says that the shop gets no value; for a missing field Caddy would forward a placeholder.
      const fields = names.flatMap((name) => [name, fieldValue(request.fields, name.toLowerCase()) ?? '']);
      exchange.answer({
        status: 200,
        fields: [...fields, 'Cache-Control', 'no-store', 'Content-Length', '0'],
        body: '',
      });
    },
  });
}
