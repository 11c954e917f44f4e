import type { Locale } from '../data/catalogue.ts';
import type { ShopState } from '../data/seeds.ts';
import type { Received } from '../received.ts';
import type { ShopSettings } from '../settings.ts';
import type { RefreshTokens, SigningKeys, TokenUser } from '../tokens.ts';
import type { PhpParameters } from './request.ts';
import type { AttributeRules, Attributes } from './rules.ts';

export type ShopMethod = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** What a handler gives back; links and envelopes are added when it is written. */
export type Resource = {
  readonly type: string;
  readonly id: string | null;
  readonly attributes: object;
  /** Path of `links.self`; default `/type/id`. */
  readonly self?: string;
  /** What `include` may name. */
  readonly related?: Relations;
};

export type Relations = Readonly<Record<string, () => readonly Resource[]>>;

export type Answer = {
  readonly status: number;
  /** A JSON:API document of one or of a list. */
  readonly data?: Resource | readonly Resource[];
  /** A body that is none; its `content-type` is among the fields. */
  readonly body?: string;
  readonly fields?: Readonly<Record<string, string>>;
};

/** What all requests share. */
export type Shop = {
  readonly state: ShopState;
  /** May be changed at any time. */
  readonly settings: ShopSettings;
  readonly keys: SigningKeys;
  readonly refreshTokens: RefreshTokens;
  readonly received: Received;
  /** Aborted when the shop closes: nothing waits on then. */
  readonly stopping: AbortSignal;
};

/** A request whose route, body and attributes have been checked. */
export type ResourceCall = Shop & {
  readonly method: ShopMethod;
  /** Who the shop believes is calling: read from the bearer token, else the default customer. */
  readonly user: TokenUser;
  readonly hasBearer: boolean;
  /** Value of `X-Anonymous-Customer-Unique-Id`, else an empty string. */
  readonly anonymousId: string;
  /** Owner of the caller's records: a guest is nobody but the id in that field. */
  readonly owner: string;
  /** Id of the last pair of the path. */
  readonly id: string | null;
  /** Ids of the pairs before it, by type; the last one of a type. */
  readonly parents: ReadonlyMap<string, string>;
  readonly query: PhpParameters;
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
  readonly idInBody?: true | undefined;
};

/** A route as a real shop declares it: a type, perhaps a parent type, and its methods. */
export type ResourceRoute = {
  readonly type: string;
  readonly parent?: string | undefined;
  readonly methods: Partial<Record<ShopMethod, Action>>;
};

export const noContent: Answer = { status: 204 };
