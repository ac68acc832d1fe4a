import { describe, expect, test } from 'vitest';
import { Notifier } from './notifier.ts';

describe('a notifier', () => {
  test('ends a wait with notify', async () => {
    const notifier = new Notifier();
    const waiting = notifier.wait();
    notifier.notify();
    expect(await waiting).toBe(true);
  });

  // NOTIFIER-1
  test('keeps several notifications as one while nobody waits', async () => {
    const notifier = new Notifier();
    notifier.notify();
    notifier.notify();
    expect(await notifier.wait()).toBe(true);
    expect(await notifier.wait({ timeoutMs: 1 })).toBe(false);
  });

  // NOTIFIER-1
  test('keeps a notification that arrives between two waits', async () => {
    const notifier = new Notifier();
    const waiting = notifier.wait();
    notifier.notify();
    notifier.notify();
    await waiting;
    expect(await notifier.wait()).toBe(true);
  });

  // NOTIFIER-2
  test('ends every wait at once with notify', async () => {
    const notifier = new Notifier();
    const waits = [notifier.wait(), notifier.wait({ timeoutMs: 10_000 }), notifier.wait()];
    notifier.notify();
    expect(await Promise.all(waits)).toEqual([true, true, true]);
  });

  test('ends a wait after its timeout, and keeps no notification for the next wait', async () => {
    const notifier = new Notifier();
    expect(await notifier.wait({ timeoutMs: 1 })).toBe(false);
    const waiting = notifier.wait();
    notifier.notify();
    expect(await waiting).toBe(true);
  });

  test('ends a wait with the reason of its signal, and continues other waits', async () => {
    const notifier = new Notifier();
    const controller = new AbortController();
    const aborted = notifier.wait({ signal: controller.signal });
    const other = notifier.wait();
    const reason = new Error('enough');
    controller.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    await expect(notifier.wait({ signal: controller.signal })).rejects.toBe(reason);
    notifier.notify();
    expect(await other).toBe(true);
  });

  test('keeps a notification for the next wait if an aborted wait missed it', async () => {
    const notifier = new Notifier();
    notifier.notify();
    await expect(notifier.wait({ signal: AbortSignal.abort() })).rejects.toThrow();
    expect(await notifier.wait({ timeoutMs: 1 })).toBe(true);
  });

  // NOTIFIER-1
  test('keeps a notification that follows a timed-out wait for the next wait', async () => {
    const notifier = new Notifier();
    expect(await notifier.wait({ timeoutMs: 1 })).toBe(false);
    notifier.notify();
    expect(await notifier.wait({ timeoutMs: 1 })).toBe(true);
  });

  // NOTIFIER-1
  test('keeps a notification that follows an aborted wait for the next wait', async () => {
    const notifier = new Notifier();
    const controller = new AbortController();
    const aborted = notifier.wait({ signal: controller.signal });
    controller.abort();
    notifier.notify();
    await expect(aborted).rejects.toThrow();
    expect(await notifier.wait({ timeoutMs: 1 })).toBe(true);
  });
});
