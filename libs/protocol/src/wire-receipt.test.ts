import { describe, expect, test } from 'vitest';
import { sampleResult } from '../test-support/index.ts';
import { toReceipt, withStoredAt } from './wire-receipt.ts';
import { wireResultSchema } from './wire-result.ts';

const ACCEPTED = Date.parse('2026-01-01T00:00:00.000Z');
const timings = { queuedMs: 700, startMs: 300, runMs: 2_000, totalMs: 3_000 };
const receipt = { acceptedAt: ACCEPTED };

describe('a receipt', () => {
  test('adds up to the time from the acceptance to the storing of the Result', () => {
    const waits: [['slot', number], ['opening', number]] = [
      ['slot', 600],
      ['opening', 300],
    ];
    const stored = sampleResult('success', { timings, receipt: { ...receipt, waits, firstOutputMs: 40 } });
    expect(toReceipt(withStoredAt(stored, `${ACCEPTED + 3_005}-7`))).toEqual({
      acceptedAt: '2026-01-01T00:00:00.000Z',
      startedAt: '2026-01-01T00:00:01.000Z',
      storedAt: '2026-01-01T00:00:03.005Z',
      totalMs: 3_005,
      firstOutputMs: 40,
      parts: [
        { step: 'slot', ms: 600, clock: 'redis' },
        { step: 'opening', ms: 300, clock: 'host' },
        { step: 'waiting', ms: 100, clock: 'redis' },
        { step: 'running', ms: 2_000, clock: 'host' },
        { step: 'storing', ms: 5, clock: 'redis' },
      ],
    });
  });

  test('has the opening of a wider sandbox, and a question about a second attempt', () => {
    const stored = sampleResult('failure', { timings, receipt: { ...receipt, openingMs: 250, askedMs: 10_000 } });
    expect(toReceipt(withStoredAt(stored, `${ACCEPTED + 13_250}-0`))?.parts).toEqual([
      { step: 'waiting', ms: 1_000, clock: 'redis' },
      { step: 'opening', ms: 250, clock: 'host' },
      { step: 'running', ms: 2_000, clock: 'host' },
      { step: 'approval', ms: 10_000, clock: 'redis' },
    ]);
  });

  test('says so when it is not known how long the command ran', () => {
    const lost = sampleResult('lost', { timings: { ...timings, runMs: 0, totalMs: 1_000 }, receipt });
    expect(toReceipt(withStoredAt(lost, `${ACCEPTED + 61_000}-0`))?.parts).toEqual([
      { step: 'waiting', ms: 1_000, clock: 'redis' },
      { step: 'unknown', ms: 60_000, clock: 'redis' },
    ]);
  });

  test('has no start for a command that was never started', () => {
    const waited = { queuedMs: 40, startMs: 0, runMs: 0, totalMs: 40 };
    const cancelled = sampleResult('cancellation', { timings: waited, receipt: { ...receipt, unstarted: true } });
    expect(toReceipt(withStoredAt(cancelled, `${ACCEPTED + 41}-0`))).toEqual({
      acceptedAt: '2026-01-01T00:00:00.000Z',
      storedAt: '2026-01-01T00:00:00.041Z',
      totalMs: 41,
      parts: [
        { step: 'waiting', ms: 40, clock: 'redis' },
        { step: 'storing', ms: 1, clock: 'redis' },
      ],
    });
  });

  test('is absent without stored times, and bounds what it reads', () => {
    expect(toReceipt(sampleResult('success'))).toBeUndefined();
    expect(withStoredAt(sampleResult('success'), '5-0')).toEqual(sampleResult('success'));
    const forged = sampleResult('success', { timings, receipt: { acceptedAt: 8.64e15 } });
    expect(toReceipt(withStoredAt(forged, 'x'))?.storedAt).toBe('+275760-09-13T00:00:00.000Z');
    for (const acceptedAt of [-1, 1.5, 9e15])
      expect(wireResultSchema.safeParse({ ...forged, receipt: { acceptedAt } }).success).toBe(false);
  });
});
