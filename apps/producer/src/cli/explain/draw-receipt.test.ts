import type { Receipt } from '@shellfleet/client';
import { describe, expect, test } from 'vitest';
import { drawReceipt } from './draw-receipt.ts';

const RECEIPT: Receipt = {
  acceptedAt: '2026-01-01T00:00:00.000Z',
  startedAt: '2026-01-01T00:00:06.000Z',
  storedAt: '2026-01-01T00:00:10.000Z',
  totalMs: 10_000,
  parts: [
    { step: 'slot', ms: 5_000, clock: 'redis' },
    { step: 'opening', ms: 1_000, clock: 'host' },
    { step: 'running', ms: 3_997, clock: 'host' },
    { step: 'storing', ms: 3, clock: 'redis' },
  ],
};

const draw = (receipt: Receipt, width: number) =>
  drawReceipt(receipt, { width, mark: '#' }).map(({ before, bar, after }) => `${before}${bar}${after}`.trimEnd());

describe('the drawing of a receipt', () => {
  test('is a waterfall, in which each bar begins where the last one ended', () => {
    expect(draw(RECEIPT, 70)).toEqual([
      'for a slot         ###############                 5.00 s  50 %  Redis',
      'opening its shell                 ###              1.00 s  10 %  host',
      'running                              ############  3.99 s  40 %  host',
      'storing                                         #    3 ms   0 %  Redis',
    ]);
  });

  test('has no bars without room for them, and is cut at the width', () => {
    expect(draw(RECEIPT, 46)).toEqual([
      'for a slot         5.00 s  50 %  Redis',
      'opening its shell  1.00 s  10 %  host',
      'running            3.99 s  40 %  host',
      'storing              3 ms   0 %  Redis',
    ]);
    for (const width of [1, 9, 20, 30, 50, 80, 200])
      expect(Math.max(...draw(RECEIPT, width).map(({ length }) => length))).toBeLessThanOrEqual(width);
  });

  test('is empty without parts', () => {
    expect(draw({ ...RECEIPT, parts: [] }, 80)).toEqual([]);
  });
});
