import type { Partition } from '../request/partition.ts';
import type { AskUpstream, UpstreamQuestion } from './ask-upstream.ts';
import { maxReplyBytes, validateReply } from './validate-reply.ts';
import { fail, type Verdict } from './verdict.ts';

export interface UpstreamSourceOptions {
  readonly ask: AskUpstream;
  /** Path of the shop's resolver. */
  readonly path: string;
  /** Milliseconds to the complete reply. */
  readonly timeoutMs: number;
  /** Questions under way at once; one more is a failure with fault `overloaded`. */
  readonly maxQuestions: number;
  /** Told of an exception of `ask`, which is a bug. */
  readonly onException: (cause: unknown) => void;
}

/** The shop's own resolver, asked with what is in the key and nothing else. */
export class UpstreamSource {
  readonly #options: UpstreamSourceOptions;
  #underWay = 0;

  constructor(options: UpstreamSourceOptions) {
    this.#options = options;
  }

  get underWay(): number {
    return this.#underWay;
  }

  get isFull(): boolean {
    return this.#underWay >= this.#options.maxQuestions;
  }

  /** Never rejects, and ends within the time-out even if the port does not. */
  async ask(url: string, partition: Partition): Promise<Verdict> {
    if (this.isFull) return fail('overloaded', 'overloaded');
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<Verdict>((resolve) => {
      timer = setTimeout(() => resolve(fail('timeout', 'timeout')), this.#options.timeoutMs);
    });
    try {
      return await Promise.race([this.#exchange(this.#question(url, partition)), deadline]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Holds its place until the port has settled, also behind the deadline: the upstream is still busy with it. */
  async #exchange(question: UpstreamQuestion): Promise<Verdict> {
    this.#underWay += 1;
    try {
      const reply = await this.#options.ask(question);
      return 'fault' in reply ? fail(reply.fault, reply.fault) : validateReply(reply);
    } catch (cause) {
      this.#options.onException(cause);
      return fail('unreachable', 'exception');
    } finally {
      this.#underWay -= 1;
    }
  }

  #question(url: string, { locale, store, host }: Partition): UpstreamQuestion {
    const { path, timeoutMs } = this.#options;
    const fields = [
      'Accept',
      'application/vnd.api+json',
      'Accept-Encoding',
      'identity',
      'Accept-Language',
      locale,
    ];
    let target = `${path}?url=${encodeURIComponent(url)}`;
    if (store !== '') {
      // A shop takes its store from the one or the other; both name the same, so the answer is the key's in either.
      if (fieldText.test(store)) fields.push('Store', store);
      target += `&_store=${encodeURIComponent(store)}`;
    }
    if (host !== '') fields.push('Host', host);
    return { target, fields, timeoutMs, maxBodyBytes: maxReplyBytes };
  }
}

/** What is the same text in a field value (RFC 9110 section 5.5); any other store can stand in the query alone. */
const fieldText = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
