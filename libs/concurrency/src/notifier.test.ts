import { expect, test } from 'vitest';
import { Notifier } from './notifier.ts';

test('notify ends the wait', async () => {
  const notifier = new Notifier();
  const waiting = notifier.wait();
  notifier.notify();
  expect(await waiting).toBe(true);
});

test('NOTIFIER-1: notifications while nobody waits are kept, and count as one', async () => {
  const notifier = new Notifier();
  notifier.notify();
  notifier.notify();
  expect(await notifier.wait()).toBe(true);
  expect(await notifier.wait({ timeoutMs: 1 })).toBe(false);
});

test('NOTIFIER-1: a notification between the end of a wait and the next one is kept', async () => {
  const notifier = new Notifier();
  const waiting = notifier.wait();
  notifier.notify();
  notifier.notify();
  await waiting;
  expect(await notifier.wait()).toBe(true);
});

test('NOTIFIER-2: notify ends every wait that is under way', async () => {
  const notifier = new Notifier();
  const waits = [notifier.wait(), notifier.wait({ timeoutMs: 10_000 }), notifier.wait()];
  notifier.notify();
  expect(await Promise.all(waits)).toEqual([true, true, true]);
});

test('a wait without a notification ends after its timeout, and none is left over for the next', async () => {
  const notifier = new Notifier();
  expect(await notifier.wait({ timeoutMs: 1 })).toBe(false);
  const waiting = notifier.wait();
  notifier.notify();
  expect(await waiting).toBe(true);
});

test('a wait ends with the reason of its signal; other waits go on', async () => {
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

test('a notification that an aborted waiter did not receive is kept for the next', async () => {
  const notifier = new Notifier();
  notifier.notify();
  await expect(notifier.wait({ signal: AbortSignal.abort() })).rejects.toThrow();
  expect(await notifier.wait({ timeoutMs: 1 })).toBe(true);
});

test('NOTIFIER-1: a notification after a wait that timed out is kept for the next', async () => {
  const notifier = new Notifier();
  expect(await notifier.wait({ timeoutMs: 1 })).toBe(false);
  notifier.notify();
  expect(await notifier.wait({ timeoutMs: 1 })).toBe(true);
});

test('NOTIFIER-1: a notification after a wait that was aborted is kept for the next', async () => {
  const notifier = new Notifier();
  const controller = new AbortController();
  const aborted = notifier.wait({ signal: controller.signal });
  controller.abort();
  notifier.notify();
  await expect(aborted).rejects.toThrow();
  expect(await notifier.wait({ timeoutMs: 1 })).toBe(true);
});
