import { expect, test } from 'vitest';
import { Turns } from './turns.ts';

function recorder() {
  const order: string[] = [];
  const send = (name: string) => async () => {
    order.push(name);
  };
  return { order, send };
}

test('a call sends in the same step when nothing longer is under way', () => {
  const { order, send } = recorder();
  const turns = new Turns();
  void turns.take(send('a'));
  void turns.take(send('b'));
  expect(order).toEqual(['a', 'b']);
});

test('calls behind a longer turn wait for its last step, and keep their order', async () => {
  const { order, send } = recorder();
  const turns = new Turns();
  const step = Promise.withResolvers<void>();
  const long = turns.hold(async () => {
    order.push('first part');
    await step.promise;
    order.push('last part');
  });
  const after = [turns.take(send('b')), turns.hold(send('c')), turns.take(send('d'))];
  expect(order).toEqual(['first part']);
  step.resolve();
  await Promise.all([long, ...after]);
  expect(order).toEqual(['first part', 'last part', 'b', 'c', 'd']);
  void turns.take(send('e'));
  expect(order.at(-1)).toBe('e');
});

test('a longer turn that fails holds nobody up', async () => {
  const { order, send } = recorder();
  const turns = new Turns();
  const failing = turns.hold(async () => {
    throw new Error('no');
  });
  const after = turns.take(send('b'));
  await expect(failing).rejects.toThrow('no');
  await after;
  expect(order).toEqual(['b']);
});
