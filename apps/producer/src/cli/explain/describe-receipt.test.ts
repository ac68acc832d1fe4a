import type { ReceiptPart, Result } from '@shellfleet/client';
import { fromWireResult } from '@shellfleet/protocol';
import { sampleResult } from '@shellfleet/protocol/test-support';
import { describe, expect, test } from 'vitest';
import { describeReceipt, type HowOpened } from './describe-receipt.ts';
import type { CommandHistory } from './read-history.ts';

const COMMAND = 's.01JZX0Y7R8QWERTY0123456789';
const EARLIER = 's.01JZX0Y7R8AAAAAA0123456789';
const AT = '2026-01-01T00:00:00.000Z';

function result(
  parts: [ReceiptPart['step'], number][],
  own: { firstOutputMs?: number; unstarted?: true } = {},
): Result {
  const { firstOutputMs, unstarted } = own;
  return {
    ...fromWireResult({ commandId: COMMAND, sessionId: 's' }, sampleResult('success', { hostId: 'h1' })),
    receipt: {
      ...{ acceptedAt: AT, storedAt: AT, totalMs: 0 },
      ...(unstarted === undefined && { startedAt: AT }),
      ...(firstOutputMs !== undefined && { firstOutputMs }),
      parts: parts.map(([step, ms]) => ({ step, ms, clock: 'redis' })),
    },
  };
}

const describeAll = (
  parts: [ReceiptPart['step'], number][],
  history: Partial<CommandHistory> = {},
  start: HowOpened = {},
) => describeReceipt(result(parts), { unreachable: [], ...history }, start);

describe('the words of a receipt', () => {
  test('say only how long a command ran that waited for nothing', () => {
    expect(
      describeReceipt(
        result(
          [
            ['waiting', 2],
            ['running', 5_000],
            ['storing', 1],
          ],
          { firstOutputMs: 12 },
        ),
        { unreachable: [] },
      ),
    ).toEqual([
      'The fleet itself needed 2 ms before the start.',
      'It ran for 5.00 s on the host h1; its first output came after 12 ms.',
    ]);
  });

  test('end with what the sandbox used, if that is known', () => {
    const usage = { cpuMs: 1_234, peakMemoryBytes: 104_857_600 };
    expect(describeReceipt({ ...result([['running', 5_000]]), usage }, { unreachable: [] })).toEqual([
      'It ran for 5.00 s on the host h1.',
      'Meanwhile its sandbox used 1.23 s of processor time, and its highest memory up to its end was 104.9 MB.',
    ]);
  });

  test('begin with the longest part, if that is not the run', () => {
    expect(
      describeAll([
        ['slot', 8_000],
        ['opening', 500],
        ['running', 1_500],
      ]),
    ).toEqual([
      '80 % of its time was not the run itself but the wait for a slot.',
      'Its session waited 8.00 s for a slot of a host.',
      'Its shell was opened for it in 500 ms.',
      'It ran for 1.50 s on the host h1.',
    ]);
  });

  test.each<[string, [ReceiptPart['step'], number], Partial<CommandHistory>, HowOpened, string]>([
    [
      'the earlier command',
      ['earlier', 2_000],
      { earlierId: EARLIER },
      {},
      `It waited 2.00 s for earlier commands of its session, which run one at a time; ${EARLIER} was the last of them.`,
    ],
    [
      'who approved it',
      ['approval', 65_000],
      { answer: { id: 'q', decision: 'approved', answeredBy: 'ada', scope: 'prefix' } },
      {},
      'A person was asked about it for 1 min 05 s, and ada approved it (scope prefix).',
    ],
    [
      'who denied it',
      ['approval', 2_000],
      { answer: { id: 'q', decision: 'denied' } },
      {},
      'A person was asked about it for 2.00 s, and somebody denied it.',
    ],
    [
      'that nobody answered',
      ['approval', 2_000],
      { answer: { id: 'q', decision: 'expired' } },
      {},
      'A person was asked about it for 2.00 s, and nobody answered in time.',
    ],
    ['a pull', ['image', 2_000], {}, {}, 'Its host pulled its image for 2.00 s.'],
    [
      'a warm start',
      ['opening', 20],
      {},
      { start: 'warm' },
      'Its shell was opened for it in 20 ms, from a pool that had it ready.',
    ],
    [
      'a cold start',
      ['opening', 700],
      {},
      { start: 'cold', coldReason: 'no-pool' },
      'Its shell was opened for it in 700 ms, cold: no pool of its host has its image, limits and network.',
    ],
    [
      'a lost shell',
      ['attempt', 2_000],
      { lossReason: 'host-lost' },
      {},
      'Until the attempt that counts began, 2.00 s went into an earlier one; its shell was lost: host-lost.',
    ],
    [
      'a host that did not answer',
      ['waiting', 2_000],
      { unreachable: ['h2'], adopted: 'waiting' },
      {},
      'It waited 2.00 s for a cause that nobody recorded; its host h2 did not answer in that time.',
    ],
    [
      'an adoption before the start',
      ['waiting', 2_000],
      { adopted: 'waiting' },
      {},
      'It waited 2.00 s for a cause that nobody recorded; its worker was replaced in that time.',
    ],
    [
      'an unknown end',
      ['unknown', 2_000],
      { lossReason: 'host-lost' },
      {},
      'It had started, and its Result was stored 2.00 s later; how long of that it ran is not known; its shell was lost: host-lost.',
    ],
    [
      'a late store',
      ['storing', 2_000],
      { adopted: 'running' },
      {},
      'From its end until its Result was stored it took 2.00 s; its worker was replaced in that time.',
    ],
    [
      'an adoption',
      ['running', 2_000],
      { adopted: 'running' },
      {},
      'It ran for 2.00 s on the host h1; its worker was replaced meanwhile, and it went on.',
    ],
  ])('name %s', (_what, part, history, start, sentence) => {
    expect(describeAll([part], history, start).at(-1)).toBe(sentence);
  });

  test('have one sentence for a step that occurred twice', () => {
    expect(
      describeAll([
        ['waiting', 2],
        ['opening', 20],
        ['waiting', 13],
      ]),
    ).toEqual(['The fleet itself needed 15 ms before the start.', 'Its shell was opened for it in 20 ms.']);
  });

  test('say that a command was never started', () => {
    expect(describeReceipt(result([['slot', 50]], { unstarted: true }), { unreachable: [] })).toEqual([
      'Its session waited 50 ms for a slot of a host.',
      'It was never started.',
    ]);
  });
});
