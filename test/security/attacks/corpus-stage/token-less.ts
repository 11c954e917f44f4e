import { namesIn, type Values } from './notation.ts';
import { octetsOf } from './play.ts';
import { readCorpus } from './read-corpus.ts';

const made = ['token', 'tag', 'opaque'];

/** The octets of all attacks that use neither a token nor a tag. */
export function corpusOctets(): string[] {
  return readCorpus().flatMap(({ values, steps }) => {
    const own: Values = { ...values, cart: 'cart-1' };
    const notations = steps.flatMap((step) => [step.bytes, step.request, step.body, ...(step.fields ?? [])]);
    const asked = notations.flatMap((text) => (text === undefined ? [] : namesIn(text, own)));
    return asked.some((name) => made.includes(name)) ? [] : steps.map((step) => octetsOf(step, own));
  });
}
