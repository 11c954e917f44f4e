/** Types of the parts that the tests use; the library has none. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';
  export default class Provider {
    constructor(issuer: string, configuration: object);
    callback(): (request: IncomingMessage, response: ServerResponse) => void;
    readonly Client: { find(id: string): Promise<object | undefined> };
    readonly Grant: new (
      of: object,
    ) => { addOIDCScope(scope: string): void; save(): Promise<string> };
    readonly RefreshToken: new (
      of: object,
    ) => { save(): Promise<string> };
  }
}
