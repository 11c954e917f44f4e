import { z } from 'zod';

/** How the corpus is written. What a file's `defaults` and a case's `rows` may say is what a step may say. */
const lines = z.union([z.string(), z.array(z.string())]);

/** `/expression/`, a text, `absent`, or a list of all values. */
const fieldExpectation = z.record(z.string(), z.union([z.string(), z.array(z.string())]));

const tokenRecipe = z.strictObject({
  /** JOSE header: members over `{typ: JWT, alg: RS256}` (null removes one), or the text itself. */
  header: z.union([z.record(z.string(), z.unknown()), z.string()]).optional(),
  /** Claims over those of a good token, or the text itself. `now+60` is a time. */
  claims: z.union([z.record(z.string(), z.unknown()), z.string()]).optional(),
  /** Who signs, and how. Default: the shop's own key. */
  sign: z
    .enum([
      ...['shop', 'stranger', 'nobody', 'zeros', 'hmac-pem', 'hmac-pem-line', 'hmac-der', 'hmac-jwk'],
      ...['hmac-empty', 'hmac-modulus', 'pss', 'rs384', 'rs512', 'es256', 'ed25519'],
    ] as const)
    .optional(),
  /** Of `${h}`, `${p}` and `${s}`, the three segments; `${twin}`: the third with a loose bit set. */
  shape: z.string().optional(),
});
export type TokenRecipe = z.infer<typeof tokenRecipe>;

const step = {
  /** Method and target; the rest of a plain HTTP/1.1 head with a Host is added. */
  request: z.string().optional(),
  fields: z.array(z.string()).optional(),
  body: z.string().optional(),
  /** Every octet, instead. Line breaks of the YAML text stand for CRLF. */
  bytes: z.string().optional(),
  /** Octet by octet; or all of it and then no more (half-closed). */
  pace: z.enum(['at-once', 'octets', 'half-close']).optional(),
  /** `401 002`: status and code; `200`: passed; `400|501`: either; `closed`: no answer at all. A list: of each request. */
  back: lines.optional(),
  /** Afterwards. `open` is proved by one more request. */
  connection: z.enum(['open', 'closed', 'any']).optional(),
  /** Fields of the last answer. */
  answer: fieldExpectation.optional(),
  /** JSON pointers into the last answer's body. */
  json: z.record(z.string(), z.unknown()).optional(),
  /** `nothing`, or the request lines that arrived, in order; `GET / HTTP/1.1 | length 5` with a body; `| body 5`: chunked as well. */
  upstream: lines.optional(),
  /** Fields of the last request there. */
  arrives: fieldExpectation.optional(),
  /** Names of all fields that the last request there may have. */
  only: z.array(z.string()).optional(),
  /** Text that no octet there holds. */
  never: lines.optional(),
  token: tokenRecipe.optional(),
};

const stage = z.enum(['shop', 'trusting', 'parties', 'small', 'lenient', 'observe', 'slashes', 'sockets']);
export type StageName = z.infer<typeof stage>;

const corpusCase = z.strictObject({
  name: z.string(),
  /** Of the attack list. */
  evidence: z.string().regex(/^[A-Z]\d+(, [A-Z]\d+)*$/),
  stage: stage.optional(),
  ...step,
  /** One case for each value; of several names, for each pair. */
  over: z.record(z.string(), z.array(z.string())).optional(),
  /** One case for each row: what it says replaces; other names are values. */
  rows: z.array(z.record(z.string(), z.unknown())).optional(),
  /** One after the other, each on a connection of its own. */
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
