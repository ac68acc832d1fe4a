import { describe, expect, test } from 'vitest';
import { Engine } from './engine.ts';

const never = () => new Promise<never>(() => {});
const times = { callTimeoutMs: 5, failuresToOpen: 3, probeIntervalMs: 1 };
const newEngine = () => new Engine('/nowhere/docker.sock', undefined, times);

function engineError(): Error {
  return Object.assign(new Error('no such container'), { statusCode: 404 });
}

describe('calls of the Docker engine', () => {
  test('ENGINE-1: a call ends at its deadline when the engine does not reply', async () => {
    await expect(newEngine().call(never)).rejects.toThrow('it took longer than 5 ms');
  });

  test('ENGINE-2: after several calls without a reply, further calls fail without being made', async () => {
    const engine = newEngine();
    for (let call = 0; call < 3; call += 1) await expect(engine.call(never)).rejects.toThrow('longer');
    let made = 0;
    const again = engine.call(async () => {
      made += 1;
    });
    await expect(again).rejects.toMatchObject({ code: 'DOCKER_UNAVAILABLE', message: engine.problem });
    expect(made).toBe(0);
    expect(engine.problem).toBe('The Docker engine has not answered 3 calls in a row (it took longer than 5 ms).');
    await engine.close();
  });

  test('a reply, even an error, resets the count of failed calls', async () => {
    const engine = newEngine();
    for (let round = 0; round < 3; round += 1) {
      await expect(engine.call(never)).rejects.toThrow();
      await expect(engine.call(never)).rejects.toThrow();
      await expect(engine.call(() => Promise.reject(engineError()))).rejects.toThrow('no such container');
    }
    expect(engine.problem).toBe(undefined);
    await engine.close();
  });

  test('calls are made again once a probe gets a reply', async () => {
    const engine = newEngine();
    for (let call = 0; call < 3; call += 1) await engine.call(never).catch(() => {});
    engine.docker.ping = async () => 'OK';
    await expect.poll(() => engine.problem, { interval: 5 }).toBe(undefined);
    expect(await engine.call(async () => 'answered')).toBe('answered');
    await engine.close();
  });
});
