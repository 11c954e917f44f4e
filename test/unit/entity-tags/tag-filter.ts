import { AnonymousRecords } from '../../../src/entity-tags/anonymous-records.ts';
import type { EntityTagContext } from '../../../src/entity-tags/context.ts';
import {
  createEntityTagMatcher,
  createEntityTags,
  type EntityTags,
} from '../../../src/entity-tags/filter.ts';
import { MemoryTagStore } from '../../../src/entity-tags/memory-store.ts';
import type { TrackedResourceOptions } from '../../../src/entity-tags/resources.ts';
import type { CanonicalRequest, Method } from '../../../src/http/canonical-request.ts';
import { editFields, type FieldList, fieldValue } from '../../../src/http/field-list.ts';
import { type Answer, isAnswer, isRejection } from '../../../src/http/rejection.ts';
import type { PathRules } from '../../../src/routes/path-table.ts';
import type { ForwardOutcome, ObservedHooks, UpstreamHooks } from '../../../src/upstream/hooks.ts';
import { canonicalRequest, runFilter, wishOf } from '../../harness/run-filter.ts';
import { timesOf } from './tag-store.contract.ts';

export const carts: TrackedResourceOptions = {
  collection: '/carts',
  member: '/carts/{cart_id}',
  methods: ['PATCH', 'DELETE'],
  ifMatch: 'strict',
  ignore: [],
};

export function createFilter(
  resource: Partial<TrackedResourceOptions> = {},
  more: Partial<EntityTagContext & { readonly paths: PathRules }> = {},
): { filter: EntityTags; events: string[] } {
  const events: string[] = [];
  // Long, so that a slow machine reaches none of these limits.
  const times = timesOf({ lease: 120_000, sendBy: 60_000 });
  const { paths = { ignoredPrefixes: [] }, ...options } = more;
  const matcher = createEntityTagMatcher([{ ...carts, ...resource }], paths);
  const filter = createEntityTags(matcher, {
    store: new MemoryTagStore({ times }),
    times,
    anonymousRecords: new AnonymousRecords(1000),
    waitMs: 50,
    trackedResponseBytes: 10_000,
    now: Date.now,
    onEvent: (event) => events.push(event),
    ...options,
  });
  return { filter, events };
}

export const requestOf = (method: Method, target: string, fields: FieldList = []) =>
  canonicalRequest(target, { method, fields: ['Host', 'shop.example', ...fields] });

export type ShopAnswer = ForwardOutcome | ((forwarded: FieldList) => ForwardOutcome);

/** A complete answer of the shop. */
export function answered(status: number, body: unknown = '', fields: FieldList = []): ForwardOutcome {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return {
    kind: 'answered',
    status,
    fields: ['Content-Type', 'application/vnd.api+json', ...fields],
    body: Buffer.from(text),
  };
}

export interface Seen {
  /** The status for the client, or the name of the rejection; 0 if the shop gave no answer. */
  readonly status: number | string;
  readonly tag: string | undefined;
  readonly fields: FieldList;
  /** The fields that the shop got; undefined if it was not asked. */
  readonly forwarded: FieldList | undefined;
}

/** The hooks of a request that the filter forwards. */
export async function begin(
  filter: EntityTags,
  request: CanonicalRequest,
  { subject = 'anna', observed = false }: { subject?: string; observed?: boolean } = {},
): Promise<ObservedHooks> {
  const identity = subject === '' ? undefined : { subject };
  const hooks = await runFilter(filter, request, identity, Buffer.alloc(0), observed);
  if (hooks === undefined || isAnswer(hooks) || isRejection(hooks)) throw new Error('not forwarded');
  return hooks;
}

/** Sends one request through the filter, as the pipeline and the forwarder do, to a shop that gives the answer of the test. */
export async function ask(
  filter: EntityTags,
  request: CanonicalRequest,
  shop: ShopAnswer,
  { subject = 'anna', observed = false }: { subject?: string | undefined; observed?: boolean } = {},
): Promise<Seen> {
  const wish = wishOf(filter, request, observed);
  const body = wish === 'whole-body' ? Buffer.from('{}') : undefined;
  const identity = subject === '' ? undefined : { subject };
  const verdict = await runFilter(filter, request, identity, body, observed);
  if (isRejection(verdict))
    return { status: verdict.rejection, tag: undefined, fields: [], forwarded: undefined };
  if (isAnswer(verdict)) return seen(verdict);
  return forward(request, verdict, shop);
}

function seen({ status, fields }: Answer): Seen {
  return { status, tag: fieldValue(fields, 'etag'), fields, forwarded: undefined };
}

async function forward(
  request: CanonicalRequest,
  hooks: UpstreamHooks | undefined,
  shop: ShopAnswer,
): Promise<Seen> {
  const forwarded = editFields(request.fields, hooks?.requestFields ?? {});
  const isTooLate = hooks?.maySend !== undefined && !hooks.maySend();
  const outcome: ForwardOutcome = isTooLate
    ? { kind: 'unsent', fault: 'not-sent' }
    : typeof shop === 'function'
      ? shop(forwarded)
      : shop;
  const edits = (await hooks?.onOutcome(outcome)) ?? {};
  if (outcome.kind !== 'answered') return { status: 0, tag: undefined, fields: [], forwarded };
  if (edits.rejection !== undefined)
    return { status: edits.rejection.rejection, tag: undefined, fields: [], forwarded };
  const fields = editFields(outcome.fields, edits.fields ?? {});
  const status = edits.notModified === true ? 304 : outcome.status;
  return { status, tag: fieldValue(fields, 'etag'), fields, forwarded };
}
