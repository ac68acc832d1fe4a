import { expect, test } from 'vitest';
import { fetchOrder } from './fetch-order.ts';

const queue = (name: string, priority?: number, addedAt = 0) => ({
  name,
  head: priority === undefined ? undefined : { priority, addedAt },
});

test.each([
  ['the head that has waited longest is first', [queue('a', 0, 20), queue('b', 0, 10)], 'ba'],
  ['a smaller priority goes before a longer wait', [queue('a', 1, 10), queue('b', 0, 20)], 'ba'],
  ['an empty queue is left out', [queue('a'), queue('b', 9, 10), queue('c')], 'b'],
  ['equal heads keep the order in which the host lists them', [queue('a', 0, 10), queue('b', 0, 10)], 'ab'],
])('%s', (_title, queues, order) => {
  expect(fetchOrder(queues).join('')).toBe(order);
});
