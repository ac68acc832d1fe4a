import type { Wait } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { type Cause, explainWait } from './explain-wait.ts';

const WAIT = { from: 100, to: 200 };

/** Returns parts of these lengths, each of which begins where the one before it ends. */
function endToEnd(lengths: [Wait, number][]) {
  let to = WAIT.from;
  return lengths.map(([wait, ms]) => {
    const from = to;
    to += ms;
    return { wait, from, to };
  });
}

describe('the causes of a wait', () => {
  test.each<[string, Cause[], [Wait, number][]]>([
    ['none', [], []],
    ['one, up to the end', [{ wait: 'slot', from: 100, to: 200 }], [['slot', 100]]],
    ['one that began before the wait', [{ wait: 'earlier', from: 0, to: 150 }], [['earlier', 50]]],
    [
      'one that ends after the wait',
      [{ wait: 'approval', from: 160, to: 900 }],
      [
        ['waiting', 60],
        ['approval', 40],
      ],
    ],
    ['one that ended before the wait', [{ wait: 'opening', from: 10, to: 100 }], []],
    ['one that began after the wait', [{ wait: 'opening', from: 200, to: 300 }], []],
    ['one whose times are reversed', [{ wait: 'slot', from: 180, to: 120 }], []],
    [
      'several, with a gap between them',
      [
        { wait: 'opening', from: 170, to: 190 },
        { wait: 'slot', from: 100, to: 130 },
      ],
      [
        ['slot', 30],
        ['waiting', 40],
        ['opening', 20],
      ],
    ],
    [
      'two at the same time, of which the first counts',
      [
        { wait: 'image', from: 130, to: 150 },
        { wait: 'opening', from: 120, to: 180 },
        { wait: 'slot', from: 100, to: 140 },
      ],
      [
        ['slot', 20],
        ['opening', 10],
        ['image', 20],
        ['opening', 30],
      ],
    ],
  ])('divide it in their order: %s', (_what, causes, parts) => {
    expect(explainWait(WAIT, causes)).toEqual(endToEnd(parts));
  });

  test('divide nothing of a wait that has no length', () => {
    expect(explainWait({ from: 100, to: 100 }, [{ wait: 'slot', from: 0, to: 900 }])).toEqual([]);
  });
});
