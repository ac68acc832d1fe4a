import { describe, expect, test } from 'vitest';
import { CallOrder, KeyedCallOrder } from './call-order.ts';

function recorder() {
  const order: string[] = [];
  const call = (name: string) => async () => {
    order.push(name);
  };
  return { order, call };
}

describe('the order of calls', () => {
  test('starts a call at once when no exclusive call runs', () => {
    const { order, call } = recorder();
    const calls = new CallOrder();
    void calls.run(call('a'));
    void calls.run(call('b'));
    expect(order).toEqual(['a', 'b']);
  });

  test('delays later calls in their order until the last step of an exclusive call', async () => {
    const { order, call } = recorder();
    const calls = new CallOrder();
    const step = Promise.withResolvers<void>();
    const long = calls.runExclusive(async () => {
      order.push('first part');
      await step.promise;
      order.push('last part');
    });
    const after = [calls.run(call('b')), calls.runExclusive(call('c')), calls.run(call('d'))];
    expect(order).toEqual(['first part']);
    step.resolve();
    await Promise.all([long, ...after]);
    expect(order).toEqual(['first part', 'last part', 'b', 'c', 'd']);
    void calls.run(call('e'));
    expect(order.at(-1)).toBe('e');
  });

  test('delays no call behind an exclusive call that failed', async () => {
    const { order, call } = recorder();
    const calls = new CallOrder();
    const failing = calls.runExclusive(async () => {
      throw new Error('no');
    });
    const after = calls.run(call('b'));
    await expect(failing).rejects.toThrow('no');
    await after;
    expect(order).toEqual(['b']);
  });

  test('delays keyed calls only behind calls of the same key', async () => {
    const { order, call } = recorder();
    const calls = new KeyedCallOrder();
    const step = Promise.withResolvers<void>();
    const first = calls.runExclusive('a', () => step.promise.then(call('a1')));
    const second = calls.runExclusive('a', call('a2'));
    await calls.runExclusive('b', call('b1'));
    expect(order).toEqual(['b1']);
    step.resolve();
    await Promise.all([first, second]);
    expect(order).toEqual(['b1', 'a1', 'a2']);
  });
});
