import { type CommandPayload, type EntryPayload, sessionKeys } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { Pending, type Sent } from '../results/pending-results.ts';
import { Interceptors, type SubmitInput, type SubmitInterceptor } from './interceptors.ts';

const keys = sessionKeys('ns', 'tenant', 's');
const payloadOf = (script: string): CommandPayload => ({
  type: 'command',
  script,
  timeoutMs: 1,
  killGraceMs: 0,
  encoding: 'utf8',
});

function inputOf(script: string, sessionId = 's'): SubmitInput {
  const ids = { namespace: 'ns', tenant: 'tenant', sessionId, commandId: `${sessionId}.${script}` };
  return { ...ids, payload: payloadOf(script), durable: false, retry: 'never' };
}

/** Records the script or the type of each payload that is sent. */
function recorder() {
  const sent: string[] = [];
  const send = (script: string) => async (payload: EntryPayload) => {
    sent.push(payload.type === 'command' ? payload.script : payload.type);
    return { pending: new Pending(keys, script, 0), deduplicated: false } satisfies Sent;
  };
  return { sent, send };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('interceptors', () => {
  test('enclose each other, the first outermost, and receive the reply', async () => {
    const steps: string[] = [];
    const trace =
      (name: string): SubmitInterceptor =>
      async (input, next) => {
        steps.push(`${name} in`);
        const reply = await next(input);
        steps.push(`${name} out ${reply.commandId}`);
        return reply;
      };
    const { sent, send } = recorder();
    await new Interceptors([trace('a'), trace('b')]).around(inputOf('one'), send('one'));
    expect(steps).toEqual(['a in', 'b in', 'b out s.one', 'a out s.one']);
    expect(sent).toEqual(['one']);
  });

  // SUBMIT-1
  test('keep the call order of a session, however long each takes', async () => {
    const delays: Record<string, number> = { one: 30, two: 1, three: 10, four: 0 };
    const slow: SubmitInterceptor = async (input, next) => {
      await pause(delays[input.commandId.slice(2)] ?? 0);
      return next(input);
    };
    const { sent, send } = recorder();
    const interceptors = new Interceptors([slow]);
    await Promise.all(Object.keys(delays).map((name) => interceptors.around(inputOf(name), send(name))));
    expect(sent).toEqual(['one', 'two', 'three', 'four']);
  });

  // SUBMIT-1
  test('keep the order of the remaining entries when a submit is refused', async () => {
    const decide: SubmitInterceptor = async (input, next) => {
      if (input.commandId === 's.refused') throw new Error('no');
      if (input.commandId === 's.slow') await pause(20);
      return next(input);
    };
    const { sent, send } = recorder();
    const interceptors = new Interceptors([decide]);
    const names = ['slow', 'refused', 'fast'];
    await Promise.allSettled(names.map((name) => interceptors.around(inputOf(name), send(name))));
    expect(sent).toEqual(['slow', 'fast']);
  });

  test('delay only the session whose submit they hold', async () => {
    const held = Promise.withResolvers<void>();
    const hold: SubmitInterceptor = async (input, next) => {
      if (input.sessionId === 'held') await held.promise;
      return next(input);
    };
    const { sent, send } = recorder();
    const interceptors = new Interceptors([hold]);
    const waiting = interceptors.around(inputOf('one', 'held'), send('one'));
    await interceptors.around(inputOf('two', 'other'), send('two'));
    expect(sent).toEqual(['two']);
    held.resolve();
    await waiting;
  });

  test('refuse the submit on a throw, send nothing, and keep the error as cause', async () => {
    const cause = new Error('no ticket');
    const { sent, send } = recorder();
    const refuse: SubmitInterceptor = () => {
      throw cause;
    };
    await expect(new Interceptors([refuse]).around(inputOf('one'), send('one'))).rejects.toMatchObject({
      code: 'INTERCEPTOR_FAILED',
      message: expect.stringContaining('no ticket'),
      context: { accepted: false, commandId: 's.one' },
      cause,
    });
    expect(sent).toEqual([]);
  });

  test('report in the error that the entry was accepted when an interceptor throws after sending', async () => {
    const { sent, send } = recorder();
    const late: SubmitInterceptor = async (input, next) => {
      await next(input);
      throw new Error('too late');
    };
    const notAwaited: SubmitInterceptor = async (input, next) => {
      void next(input);
      throw new Error('too late');
    };
    for (const interceptor of [late, notAwaited])
      await expect(new Interceptors([interceptor]).around(inputOf('one'), send('one'))).rejects.toMatchObject({
        code: 'INTERCEPTOR_FAILED',
        context: { accepted: true },
      });
    expect(sent).toEqual(['one', 'one']);
  });

  test('pass an error of sending on unchanged', async () => {
    const refused = new Error('Redis is full');
    const pass: SubmitInterceptor = (input, next) => next(input);
    const send = () => Promise.reject(refused);
    await expect(new Interceptors([pass, pass]).around(inputOf('one'), send)).rejects.toBe(refused);
  });

  test.each<[string, SubmitInterceptor]>([
    ['does not call next', async () => ({ commandId: 's.one', deduplicated: false })],
    ['passes on a payload that is not valid', (input, next) => next({ ...input, payload: { ...payloadOf('\0') } })],
    ['passes on another type of payload', (input, next) => next({ ...input, payload: { type: 'restart' } })],
  ])('refuse the submit when an interceptor %s', async (_what, interceptor) => {
    const { sent, send } = recorder();
    const submit = new Interceptors([interceptor]).around(inputOf('one'), send('one'));
    await expect(submit).rejects.toMatchObject({ code: 'INTERCEPTOR_FAILED', context: { accepted: false } });
    expect(sent).toEqual([]);
  });

  test('send the entry once, and reject, when an interceptor calls next twice', async () => {
    const { sent, send } = recorder();
    const twice: SubmitInterceptor = async (input, next) => {
      await next(input);
      return next(input);
    };
    const submit = new Interceptors([twice]).around(inputOf('one'), send('one'));
    await expect(submit).rejects.toMatchObject({ code: 'INTERCEPTOR_FAILED', context: { accepted: true } });
    expect(sent).toEqual(['one']);
  });

  test('may replace the payload by another of the same type', async () => {
    const { sent, send } = recorder();
    const rewrite: SubmitInterceptor = (input, next) =>
      next({ ...input, payload: { ...payloadOf('replaced'), env: { TICKET: '1' } } });
    await new Interceptors([rewrite]).around(inputOf('one'), send('one'));
    expect(sent).toEqual(['replaced']);
  });
});
