import { describe, expect, test } from 'vitest';
import { joinQueues } from './join-queues.ts';

const line = (...places: [name: string, priority: number, addedAt: number][]) =>
  places.map(([name, priority, addedAt]) => ({ name, priority, addedAt }));

describe('joined queues', () => {
  test.each([
    ['the head that has waited longest is first', [line(['a', 0, 20]), line(['b', 0, 10])], 'ba'],
    ['a smaller priority goes before a longer wait', [line(['a', 1, 10]), line(['b', 0, 20])], 'ba'],
    ['an empty queue is left out', [line(), line(['b', 9, 10]), line()], 'b'],
    ['equal heads keep the order in which the host lists them', [line(['a', 0, 10]), line(['b', 0, 10])], 'ab'],
    [
      'the order within a queue stays',
      [line(['a', 7, 10], ['c', 0, 5], ['e', 0, 40]), line(['b', 7, 20], ['d', 0, 30])],
      'aceb' + 'd',
    ],
  ])('come in the right order: %s', (_title, lines, order) => {
    expect(
      joinQueues(lines)
        .map(({ name }) => name)
        .join(''),
    ).toBe(order);
  });
});
