import type { Customer, Locale } from '../entities.ts';
import type { ShopSettings } from '../settings.ts';
import type { ShopState } from '../state.ts';
import type { IssueToken, TokenUser } from '../tokens/access-token.ts';
import type { RefreshTokens } from '../tokens/refresh-token.ts';
import type { AttributeRules, Attributes } from './attributes.ts';
import type { PhpParameters } from './php-query.ts';
import { refuse } from './shop-error.ts';

export type ShopMethod = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** What a handler gives back; links and envelopes are added when it is written. */
export type Resource = {
  readonly type: string;
  readonly id: string | null;
  readonly attributes: object | null;
  /** Path of `links.self`; default `/type/id`. */
  readonly self?: string;
  /** What `include` may name. */
  readonly related?: Readonly<Record<string, () => readonly Resource[]>>;
};

export type Answer = {
  readonly status: number;
  /** An object, an array, or no body at all. */
  readonly data?: Resource | readonly Resource[];
  /** A body that is no JSON:API document. */
  readonly plain?: { readonly contentType: string; readonly body: string };
  readonly fields?: Readonly<Record<string, string>>;
};

/** A request whose route, body and attributes have been checked. */
export type ResourceCall = {
  readonly state: ShopState;
  readonly settings: ShopSettings;
  /** Aborted when the shop closes: nothing waits on then. */
  readonly stopping: AbortSignal;
  readonly issueToken: IssueToken;
  readonly refreshTokens: RefreshTokens;
  /** Who the shop believes is calling: read from the bearer token, else the default customer. */
  readonly user: TokenUser;
  readonly hasBearer: boolean;
  /** Value of `X-Anonymous-Customer-Unique-Id`, else an empty string. */
  readonly anonymousId: string;
  /** Id of the last pair of the path. */
  readonly id: string | null;
  /** Ids of the pairs before it, by type; the last one of a type. */
  readonly parents: ReadonlyMap<string, string>;
  readonly query: PhpParameters;
  /** Attributes of a type that `fields[type]` asks for; `undefined`: all of them. */
  readonly fieldsOf: (type: string) => ReadonlySet<string> | undefined;
  /** Fields of a form body. */
  readonly form: PhpParameters | null;
  readonly attributes: Attributes;
  /** Ids that a JSON:API body names in `data`. */
  readonly bodyIds: readonly string[];
  readonly locale: Locale;
  readonly store: string;
};

export type Action = {
  readonly handle: (call: ResourceCall) => Answer | Promise<Answer>;
  readonly attributes?: AttributeRules;
  /** The body is a form or is not read as JSON:API. */
  readonly isForm?: true;
  /** PATCH or DELETE without an id in the path: the body names it. */
  readonly idInBody?: true;
};

/** A route as a real shop declares it: a type, perhaps a parent type, and its methods. */
export type ResourceRoute = {
  readonly type: string;
  readonly parent?: string;
  readonly methods: Partial<Record<ShopMethod, Action>>;
};

export function answerOne(data: Resource, status = 200): Answer {
  return { status, data };
}

export const noContent: Answer = { status: 204 };

export function customerOf(call: ResourceCall): Customer {
  const customer = call.state.customers.get(call.user.reference);
  if (customer === undefined || customer.anonymized) refuse('customerNotFound');
  return customer;
}

/** Those that belong to the caller. */
export function ownRecords<T extends { readonly owner: string }>(
  call: ResourceCall,
  records: ReadonlyMap<string, T>,
): T[] {
  return [...records.values()].filter(({ owner }) => owner === call.user.reference);
}
