import { z } from 'zod';

/** The format of the corpus. A file's `defaults` and a case's `rows` have the keys of a step. */
const lines = z.union([z.string(), z.array(z.string())]);

/** A field's value: `/expression/`, the exact text, `absent`, or a list of all its values. */
const fieldExpectation = z.record(z.string(), z.union([z.string(), z.array(z.string())]));

const tokenRecipe = z.strictObject({
  /** JOSE header: members that replace those of `{typ: JWT, alg: RS256}` (null removes one), or the whole text. */
  header: z.union([z.record(z.string(), z.unknown()), z.string()]).optional(),
  /** Claims that replace those of a good token, or the whole text. `now+60` is a time. Texts may use values of the case. */
  claims: z.union([z.record(z.string(), z.unknown()), z.string()]).optional(),
  /** Which key signs, and how: a name in `forge-token.ts`. Default: the shop's key. */
  sign: z.string().optional(),
  /** Template of `${h}`, `${p}`, `${s}` (the segments) and `${twin}` (the signature with an unused bit of base64url set). */
  shape: z.string().optional(),
});
export type TokenRecipe = z.infer<typeof tokenRecipe>;

const step = {
  /** Method and target; the version and a Host field are added. */
  request: z.string().optional(),
  fields: z.array(z.string()).optional(),
  body: z.string().optional(),
  /** The whole request, instead of `request`, `fields` and `body`. Line breaks of the YAML text stand for CRLF. */
  bytes: z.string().optional(),
  /** How the octets are sent: all at once, one by one, or all at once and then half-closed. */
  pace: z.enum(['at-once', 'octets', 'half-close']).optional(),
  /** Expected answer. `401 002`: status and code; `200`: passed; `400|501`: either; `closed`: none. A list: one per request. */
  back: lines.optional(),
  /** The connection afterwards. One more request proves `open`. */
  connection: z.enum(['open', 'closed', 'any']).optional(),
  /** Fields of the last answer. */
  answer: fieldExpectation.optional(),
  /** JSON pointers into the last answer's body. */
  json: z.record(z.string(), z.unknown()).optional(),
  /**
   * What the upstream received: `nothing`, or the request lines in order. `| length 5` after a line: with a body of this
   * length; `| body 5`: the same, or chunked.
   */
  upstream: lines.optional(),
  /** Fields of the last request that the upstream received. */
  arrives: fieldExpectation.optional(),
  /** Names of all fields that the last request at the upstream may have. */
  only: z.array(z.string()).optional(),
  /** Text that the upstream must not receive. */
  never: lines.optional(),
  token: tokenRecipe.optional(),
};

const stage = z.enum([
  ...[
    'shop',
    'trusting',
    'parties',
    'small',
    'lenient',
    'observe',
    'slashes',
    'sockets',
    'hosts',
    'versions',
  ],
] as const);
export type StageName = z.infer<typeof stage>;

const corpusCase = z.strictObject({
  name: z.string(),
  /** IDs of the attack list. */
  evidence: z.string().regex(/^[A-Z]\d+(, [A-Z]\d+)*$/),
  stage: stage.optional(),
  ...step,
  /** One case for each value; with several names, for each combination of values. A text is a list of words. */
  over: z
    .record(
      z.string(),
      z.union([z.string().transform((words) => words.trim().split(/\s+/)), z.array(z.string())]),
    )
    .optional(),
  /** One case for each row. The row's keys replace those of the case; its other names are values for templates. */
  rows: z.array(z.record(z.string(), z.unknown())).optional(),
  /** Requests one after another, each on its own connection. */
  steps: z.array(z.strictObject(step)).optional(),
});

export const corpusFile = z.strictObject({
  topic: z.string(),
  stage: stage.default('shop'),
  defaults: z.strictObject(step).default({}),
  cases: z.array(corpusCase).min(1),
});

export type Step = z.infer<z.ZodObject<typeof step>>;
export const stepSchema = z.strictObject(step);
export const stepKeys: readonly string[] = Object.keys(step);
