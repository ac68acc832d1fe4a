import { type CommandPayload, LIMITS } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { SubmitBudget } from './send-window.ts';

const command = (rest: Partial<CommandPayload> = {}): CommandPayload => ({
  ...{ type: 'command', script: 'true', timeoutMs: 1, killGraceMs: 0, encoding: 'utf8' },
  ...rest,
});

describe('submit budget', () => {
  // BUDGET-1
  test('refuses entries over its greatest number until an earlier entry is released', () => {
    const budget = new SubmitBudget();
    const releases = Array.from({ length: LIMITS.producerPending }, () => budget.take(command()));
    expect(() => budget.take(command())).toThrow(expect.objectContaining({ code: 'QUOTA_EXCEEDED', retryable: true }));
    releases[0]?.();
    releases[0]?.();
    budget.take(command());
    expect(() => budget.take({ type: 'restart' })).toThrow(`This process waits for ${LIMITS.producerPending} commands`);
  });

  // BUDGET-1
  test.each<[string, Parameters<SubmitBudget['take']>[0]]>([
    ['scripts', command({ script: 'x'.repeat(1 << 20) })],
    ['stdins', command({ stdin: 'x'.repeat(1 << 20) })],
    ['variables', command({ env: { A: 'x'.repeat(1 << 20) } })],
    [
      'parts of files',
      {
        type: 'file',
        operation: { name: 'write', path: '/f', offset: 0, last: true, transfer: 't', data: 'x'.repeat(1 << 20) },
      },
    ],
  ])('counts the size of %s', (_what, payload) => {
    const budget = new SubmitBudget();
    let taken = 0;
    const takeAll = () => {
      for (;;) {
        budget.take(payload);
        taken++;
      }
    };
    expect(takeAll).toThrow('Wait for some of their results');
    expect(taken).toBeGreaterThan((LIMITS.producerPendingChars >> 20) * 0.99 - 1);
    expect(taken).toBeLessThanOrEqual(LIMITS.producerPendingChars >> 20);
  });
});
