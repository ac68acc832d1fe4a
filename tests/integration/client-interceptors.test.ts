import type { SubmitInterceptor } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setClientStage } from '../support/client-stage.ts';
import { type OwnRedis, startOwnRedis } from '../support/own-redis.ts';

let own: OwnRedis;
beforeAll(async () => {
  own = await startOwnRedis();
});
afterAll(() => own[Symbol.asyncDispose]());

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('interceptors', () => {
  // SUBMIT-1
  test('see commands, files and restarts, which are accepted in call order', async () => {
    await using stage = await setClientStage(own);
    const host = await stage.startHost();
    const passed: string[] = [];
    let count = 0;
    // Later submits pass sooner.
    const slow: SubmitInterceptor = async (input, next) => {
      passed.push(input.payload.type);
      await pause(Math.max(0, 50 - 10 * count++));
      return next(input);
    };
    const fleet = await stage.connect({ interceptors: [slow] });
    const session = await fleet.session('s');
    const commands = Array.from({ length: 10 }, (_, index) => session.submit(`echo ${index}`));
    const results = await Promise.all(commands.map(async (command) => (await command).result()));
    expect(results.map(({ stdout }) => stdout)).toEqual(Array.from({ length: 10 }, (_, index) => `${index}\n`));
    expect(host.began.map(({ script }) => script)).toEqual(Array.from({ length: 10 }, (_, index) => `echo ${index}`));
    await session.files.write('/workspace/a', 'text');
    await session.restart();
    expect([...new Set(passed)]).toEqual(['command', 'file', 'restart']);
  });

  test('refuse one submit without an effect on the next', async () => {
    await using stage = await setClientStage(own);
    const host = await stage.startHost();
    const cause = new Error('no ticket');
    const refuse: SubmitInterceptor = async (input, next) => {
      if (input.payload.type === 'command' && input.payload.script.includes('forbidden')) throw cause;
      return next(input);
    };
    const session = await (await stage.connect({ interceptors: [refuse] })).session('s');
    const [forbidden, allowed] = await Promise.allSettled([session.run('echo forbidden'), session.run('echo allowed')]);
    expect(forbidden).toMatchObject({ status: 'rejected', reason: { code: 'INTERCEPTOR_FAILED', cause } });
    expect(allowed).toMatchObject({ status: 'fulfilled', value: { stdout: 'allowed\n' } });
    expect(host.began.map(({ script }) => script)).toEqual(['echo allowed']);
  });

  test('belong to the view that was opened with them', async () => {
    await using stage = await setClientStage(own);
    await stage.startHost();
    const refuse: SubmitInterceptor = () => Promise.reject(new Error('no'));
    const [strict, open] = await Promise.all([stage.connect({ interceptors: [refuse] }), stage.connect()]);
    await expect((await strict.session('s')).run('true')).rejects.toMatchObject({ code: 'INTERCEPTOR_FAILED' });
    expect((await (await open.session('s')).run('echo open')).stdout).toBe('open\n');
  });
});
