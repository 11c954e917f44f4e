import { describe, expect, it } from 'vitest';
import { rejectionOfFault } from '../../src/upstream/forward.ts';
import type { UpstreamHooks } from '../../src/upstream/hooks.ts';
import { ResponseRelay } from '../../src/upstream/response-relay.ts';

interface Scene {
  readonly method?: string;
  readonly status?: number;
  readonly fields?: readonly string[];
  readonly hooks?: Partial<UpstreamHooks>;
  readonly editResponse?: (fields: readonly string[], status: number) => readonly string[];
}

/** A response on its way, and what reaches the client of it. */
function open({ method = 'GET', status = 200, fields = ['ETag', '"a"'], hooks, editResponse }: Scene = {}) {
  const reached: string[] = [];
  const client = {
    begin: (code: number, reason: string, sent: readonly string[]) =>
      void reached.push(`head ${code} ${reason} ${sent.join(' ')}`),
    write: (chunk: Buffer) => {
      reached.push(`body ${chunk}`);
      return false;
    },
    end: () => void reached.push('end'),
    send: (code: number, reason: string, sent: readonly string[], body?: Buffer) =>
      void reached.push(`whole ${code} ${reason} ${sent.join(' ')} ${body}`),
  };
  const input = {
    request: { method },
    hooks: hooks && { bufferLimit: 10, onOutcome: () => ({}), ...hooks },
  };
  const caller = { conclude() {}, ...(editResponse && { editResponse }) };
  const relay = new ResponseRelay(
    ...([input, client, caller, status, 'OK', fields] as unknown as ConstructorParameters<
      typeof ResponseRelay
    >),
  );
  return { relay, reached };
}

describe('a response that nobody has a say in', () => {
  it('streams, and waits for its client', () => {
    const { relay, reached } = open();
    expect([relay.begin(), relay.mayBeReplaced]).toEqual([false, false]);
    expect(relay.write(Buffer.from('a'))).toBe(false);
    expect(relay.outcome()).toEqual({ kind: 'answered', status: 200, fields: ['ETag', '"a"'], body: null });
    expect(relay.passThrough()).toBe(true);
    relay.end({});
    expect(reached).toEqual(['head 200 OK ETag "a"', 'body a', 'end']);
  });

  it('has the fields that its caller leaves', () => {
    const { relay, reached } = open({ editResponse: (fields, status) => [...fields, 'Status', `${status}`] });
    relay.begin();
    expect(reached).toEqual(['head 200 OK ETag "a" Status 200']);
  });
});

describe('whether a body is held back', () => {
  it.each<[string, Scene, boolean]>([
    ['of unknown length', {}, true],
    ['as long as may be', { fields: ['Content-Length', '10'] }, true],
    ['longer', { fields: ['Content-Length', '11'] }, false],
    ['longer, of HEAD: there is none', { method: 'HEAD', fields: ['Content-Length', '11'] }, true],
    ['longer, of 304: there is none', { status: 304, fields: ['Content-Length', '11'] }, true],
    ['of events without end', { fields: ['Content-Type', 'Text/Event-Stream; charset=utf-8'] }, false],
    ['where none may be', { hooks: { bufferLimit: 0 } }, false],
    ['of HEAD, where none may be', { method: 'HEAD', hooks: { bufferLimit: 0 } }, false],
  ])('%s', (_, scene, isHeld) => {
    const { relay, reached } = open({ hooks: {}, ...scene });
    expect([relay.begin(), relay.mayBeReplaced, reached.length]).toEqual([isHeld, isHeld, isHeld ? 0 : 1]);
  });
});

describe('a body that is held back', () => {
  const held = (scene: Scene = {}) => {
    const opened = open({ hooks: {}, ...scene });
    opened.relay.begin();
    return opened;
  };

  it('goes out whole, with its length, when it was looked at', () => {
    const { relay, reached } = held();
    expect([relay.write(Buffer.from('12345')), relay.write(Buffer.from('67890'))]).toEqual([true, true]);
    expect([reached, String((relay.outcome() as { body: Buffer }).body)]).toEqual([[], '1234567890']);
    relay.end({ fields: { 'X-New': 'n', ETag: null } });
    expect(reached).toEqual(['whole 200 OK X-New n Content-Length 10 1234567890']);
  });

  it('is passed on where it becomes too long: head, all that was held, and the rest', () => {
    const { relay, reached } = held({ hooks: { streamedHeaderEdits: () => ({ ETag: null }) } });
    expect([relay.write(Buffer.from('1234567890')), relay.mayBeReplaced]).toEqual([true, true]);
    expect([relay.write(Buffer.from('1')), relay.mayBeReplaced]).toEqual([false, false]);
    expect(relay.write(Buffer.from('2'))).toBe(false);
    expect(relay.outcome()).toMatchObject({ body: null });
    relay.end({});
    expect(reached).toEqual(['head 200 OK ', 'body 12345678901', 'body 2', 'end']);
  });

  it('is passed on where it takes too long, also before its first piece', () => {
    const { relay, reached } = held();
    expect(relay.passThrough()).toBe(true);
    expect(relay.write(Buffer.from('a'))).toBe(false);
    expect(reached).toEqual(['head 200 OK ETag "a"', 'body a']);
  });

  it('is given to nobody where it is withheld, and must be refused then', () => {
    const { relay, reached } = held({ hooks: { withholds: (status) => status === 200 } });
    expect([relay.write(Buffer.alloc(11)), relay.write(Buffer.alloc(11)), relay.mayBeReplaced]).toEqual([
      ...[true, true, true],
    ]);
    expect(() => relay.end({})).toThrow('a withheld response was not refused');
    expect(reached).toEqual([]);
    const other = held({ status: 201, hooks: { withholds: (status) => status === 200 } });
    other.relay.write(Buffer.alloc(11, 'x'));
    expect([other.relay.mayBeReplaced, other.reached.length]).toEqual([false, 2]);
  });

  it('does not apply to HEAD and 304, whose Content-Length is unchanged', () => {
    for (const scene of [{ method: 'HEAD' }, { status: 304 }]) {
      const { relay, reached } = held({ ...scene, fields: ['Content-Length', '7'] });
      relay.end({});
      expect(reached).toEqual([`whole ${scene.status ?? 200} OK Content-Length 7 undefined`]);
    }
  });

  it('of an answer that is not modified is left out, and so is what describes it', () => {
    const fields = [
      ...['ETag', '"a"', 'Content-Type', 'text/plain', 'Content-Length', '1', 'Content-Encoding', 'gzip'],
      ...['Content-Location', '/a', 'Content-Security-Policy', 'x', 'Vary', 'Accept'],
    ];
    const { relay, reached } = held({ fields });
    relay.write(Buffer.from('b'));
    relay.end({ notModified: true });
    expect(reached).toEqual([
      'whole 304 Not Modified ETag "a" Content-Location /a Content-Security-Policy x Vary Accept undefined',
    ]);
  });
});

it.each([
  ['overloaded', false, undefined, 'overloaded', 'overloaded', 1],
  ['not-sent', false, undefined, 'overloaded', 'not-sent', 1],
  ['not-sent', false, new Error(), 'internal-error', 'not-sent', undefined],
  ['connect-timeout', false, undefined, 'upstream-timeout', 'connect-timeout', undefined],
  ['timeout', true, undefined, 'upstream-timeout', 'timeout', undefined],
  ['late', false, undefined, 'upstream-timeout', 'late', undefined],
  ['malformed', true, undefined, 'upstream-invalid', 'malformed', undefined],
  ['reset', true, undefined, 'upstream-invalid', 'reset', undefined],
  ['reset', false, undefined, 'upstream-unreachable', 'reset', undefined],
  ['request-body', false, undefined, 'bad-request', 'body-cut', undefined],
  ['internal', false, undefined, 'internal-error', 'fault', undefined],
  ['unreachable', false, undefined, 'upstream-unreachable', 'unreachable', undefined],
  ['aborted', false, undefined, 'upstream-unreachable', 'aborted', undefined],
] as const)('the fault %s, answer begun: %j, is refused', (fault, begun, cause, rejection, reason, retry) => {
  expect(rejectionOfFault(fault, begun, cause)).toEqual({
    ...{ rejection, reason },
    ...(retry !== undefined && { retryAfterSeconds: retry }),
  });
});
