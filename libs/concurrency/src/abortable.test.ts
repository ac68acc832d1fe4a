import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { abortable } from './abortable.ts';

const never = new Promise<never>(() => {});

describe('abortable', () => {
  test('settles as its promise does', async () => {
    const { signal } = new AbortController();
    expect(await abortable(Promise.resolve('value'), signal)).toBe('value');
    await expect(abortable(Promise.reject(new Error('no')), signal)).rejects.toThrow('no');
    expect(await abortable(Promise.resolve('value'), undefined)).toBe('value');
  });

  test("rejects with the signal's reason, whether it aborts before or during the wait", async () => {
    const reason = new Error('enough');
    const controller = new AbortController();
    const waiting = abortable(never, controller.signal);
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(abortable(never, controller.signal)).rejects.toBe(reason);
    await expect(abortable(Promise.resolve('value'), controller.signal)).rejects.toBe(reason);
  });

  test('leaves no unhandled rejection when the promise fails after the abort', async () => {
    const unhandled: unknown[] = [];
    const record = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', record);
    const late = Promise.withResolvers<never>();
    await expect(abortable(late.promise, AbortSignal.abort(new Error('enough')))).rejects.toThrow('enough');
    late.reject(new Error('too late'));
    await new Promise((resolve) => setTimeout(resolve, 5));
    process.off('unhandledRejection', record);
    expect(unhandled).toEqual([]);
  });

  test('leaves no listener on the signal, however the wait ends', async () => {
    const controller = new AbortController();
    await abortable(Promise.resolve(), controller.signal);
    await abortable(Promise.reject(new Error('no')), controller.signal).catch(() => {});
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });
});
