import type { Locale } from '../data/catalogue.ts';
import type { ShopState } from '../data/seeds.ts';
import type { Received } from '../received.ts';
import type { ShopSettings } from '../settings.ts';
import type { RefreshTokens, SigningKeys, TokenUser } from '../tokens.ts';
import type { PhpParameters } from './request.ts';
import type { AttributeRules, Attributes } from './rules.ts';

export type ShopMethod = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** A handler's result; the writer adds links and envelopes. */
export type Resource = {
  readonly type: string;
  readonly id: string | null;
  readonly attributes: object;
  /** Path of `links.self`; default `/type/id`. */
  readonly self?: string;
  /** Resources that `include` may name. */
  readonly related?: Relations;
};

export type Relations = Readonly<Record<string, () => readonly Resource[]>>;

export type Answer = {
  readonly status: number;
  /** A JSON:API document with one resource or a list. */
  readonly data?: Resource | readonly Resource[];
  /** A body of another media type, which `content-type` among the fields names. */
  readonly body?: string;
  readonly fields?: Readonly<Record<string, string>>;
};

/** Shared by all requests. */
export type Shop = {
  readonly state: ShopState;
  /** May change at any time. */
  readonly settings: ShopSettings;
  readonly keys: SigningKeys;
  readonly refreshTokens: RefreshTokens;
  readonly received: Received;
  /** Aborted when the shop closes, which ends all waiting. */
  readonly stopping: AbortSignal;
};

/** A request whose route, body and attributes have been checked. */
export type ResourceCall = Shop & {
  readonly method: ShopMethod;
  /** The caller: read from the bearer token, else the default customer. */
  readonly user: TokenUser;
  readonly hasBearer: boolean;
  /** Value of `X-Anonymous-Customer-Unique-Id`, else an empty string. */
  readonly anonymousId: string;
  /** Owner of the caller's records; a guest is known only by the id in that field. */
  readonly owner: string;
  /** Id of the last pair of the path. */
  readonly id: string | null;
  /** Ids of the earlier pairs, by type; the last pair of a type counts. */
  readonly parents: ReadonlyMap<string, string>;
  readonly query: PhpParameters;
  readonly form: PhpParameters | null;
  readonly attributes: Attributes;
  /** Ids in `data` of a JSON:API body. */
  readonly bodyIds: readonly string[];
  readonly locale: Locale;
  readonly store: string;
};

export type Action = {
  readonly handle: (call: ResourceCall) => Answer | Promise<Answer>;
  readonly attributes?: AttributeRules;
  /** The body is a form, or is not JSON:API. */
  readonly isForm?: true;
  /** For PATCH or DELETE without an id in the path, the body has the id. */
  readonly idInBody?: true | undefined;
};

/** A route as a real shop declares it: a type, perhaps a parent type, and its methods. */
export type ResourceRoute = {
  readonly type: string;
  readonly parent?: string | undefined;
  readonly methods: Partial<Record<ShopMethod, Action>>;
};

export const noContent: Answer = { status: 204 };
