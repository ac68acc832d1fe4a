import { type CommandPayload, type EntryPayload, sessionKeys } from '@shellfleet/protocol';
import { expect, test } from 'vitest';
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

/** Records the payloads that are sent. Redis replies when `answer` is called. */
function recorder() {
  const sent: string[] = [];
  const send = (script: string) => async (payload: EntryPayload) => {
    sent.push(payload.type === 'command' ? payload.script : payload.type);
    return { pending: new Pending(keys, script, 0), deduplicated: false } satisfies Sent;
  };
  return { sent, send };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test('the first interceptor is outermost, and receives the receipt', async () => {
  const steps: string[] = [];
  const trace =
    (name: string): SubmitInterceptor =>
    async (input, next) => {
      steps.push(`${name} in`);
      const receipt = await next(input);
      steps.push(`${name} out ${receipt.commandId}`);
      return receipt;
    };
  const { sent, send } = recorder();
  await new Interceptors([trace('a'), trace('b')]).around(inputOf('one'), send('one'));
  expect(steps).toEqual(['a in', 'b in', 'b out s.one', 'a out s.one']);
  expect(sent).toEqual(['one']);
});

test('SUBMIT-1: entries of a session are sent in call order, however long their interceptors take', async () => {
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

test('SUBMIT-1: a submit that is refused lets no later one overtake those before it', async () => {
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

test('a slow interceptor holds up its own session only', async () => {
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

test('an interceptor that throws refuses the submit: nothing is sent, and its error is the cause', async () => {
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

test('an interceptor that throws after the entry was accepted reports that it was', async () => {
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

test('an error of sending passes through as it is', async () => {
  const refused = new Error('Redis is full');
  const pass: SubmitInterceptor = (input, next) => next(input);
  const send = () => Promise.reject(refused);
  await expect(new Interceptors([pass, pass]).around(inputOf('one'), send)).rejects.toBe(refused);
});

test.each<[string, SubmitInterceptor]>([
  ['does not call next', async () => ({ commandId: 's.one', deduplicated: false })],
  ['passes on a payload that is not valid', (input, next) => next({ ...input, payload: { ...payloadOf('\0') } })],
  ['passes on another type of payload', (input, next) => next({ ...input, payload: { type: 'restart' } })],
])('an interceptor that %s refuses the submit', async (_what, interceptor) => {
  const { sent, send } = recorder();
  const submit = new Interceptors([interceptor]).around(inputOf('one'), send('one'));
  await expect(submit).rejects.toMatchObject({ code: 'INTERCEPTOR_FAILED', context: { accepted: false } });
  expect(sent).toEqual([]);
});

test('next sends once', async () => {
  const { sent, send } = recorder();
  const twice: SubmitInterceptor = async (input, next) => {
    await next(input);
    return next(input);
  };
  const submit = new Interceptors([twice]).around(inputOf('one'), send('one'));
  await expect(submit).rejects.toMatchObject({ code: 'INTERCEPTOR_FAILED', context: { accepted: true } });
  expect(sent).toEqual(['one']);
});

test('an interceptor may pass on another payload of the same type', async () => {
  const { sent, send } = recorder();
  const rewrite: SubmitInterceptor = (input, next) =>
    next({ ...input, payload: { ...payloadOf('replaced'), env: { TICKET: '1' } } });
  await new Interceptors([rewrite]).around(inputOf('one'), send('one'));
  expect(sent).toEqual(['replaced']);
});
