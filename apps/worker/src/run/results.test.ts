import { type WireResult, wireResultSchema } from '@shellfleet/protocol';
import { sampleResult } from '@shellfleet/protocol/test-support';
import { describe, expect, test } from 'vitest';
import type { ShellEnd } from '../shell/shell.ts';
import { toCancelled, toCommandResult, withBlocked } from './results.ts';

const BASE = {
  sessionId: 's',
  hostId: 'h1',
  imageDigest: 'sha256:1',
  shell: { state: 'lost', reason: 'the shell itself ended', epoch: 1 },
  timings: { queuedMs: 1, startMs: 2, runMs: 3, totalMs: 6 },
  receipt: { acceptedAt: 1 },
  usage: { cpuMs: 2, peakMemoryBytes: 4_096 },
} as const;
const NO_TEXTS = { stdout: '', stderr: '', output: '' };
const TEXTS = {
  ...NO_TEXTS,
  truncated: { bytes: false, lines: false },
  totals: sampleResult('lost').totals,
  redactions: {},
};

function ended(end: Partial<ShellEnd>): WireResult {
  const shell = { state: 'lost', shellNumber: 1 } as const;
  const all = {
    reason: 'exited',
    exitCode: 0,
    signal: null,
    shell,
    totals: { stdout: 0, stderr: 0 },
    runMs: 3,
    way: 'loop',
  } as const;
  return toCommandResult({ ...all, ...end }, TEXTS, BASE, { cwd: '/none', timeoutMs: 1_000, noOutputTimeoutMs: 500 });
}

describe('a Result', () => {
  test.each([
    [{ exitCode: 0 }, { outcome: 'success', exitCode: 0, reason: 'exited' }],
    [{ exitCode: 3 }, { outcome: 'failure', exitCode: 3, reason: 'exited' }],
    [
      { reason: 'signalled', exitCode: null, signal: 'SIGTERM' },
      { outcome: 'failure', exitCode: 143, reason: 'signalled' },
    ],
    [
      { reason: 'oom', exitCode: null, signal: null },
      { outcome: 'failure', exitCode: 137, reason: 'oom' },
    ],
    [
      { reason: 'syntax', exitCode: 2 },
      { outcome: 'failure', exitCode: 2, reason: 'exited' },
    ],
    [
      { reason: 'wall', exitCode: 143 },
      { outcome: 'timeout', exitCode: null, reason: 'wall', limitMs: 1_000 },
    ],
    [
      { reason: 'cancelled', exitCode: 130 },
      { outcome: 'cancellation', exitCode: null, reason: 'cancelled' },
    ],
    [
      { reason: 'cwd', exitCode: 1 },
      { outcome: 'error', exitCode: null, error: { code: 'COMMAND_INVALID' } },
    ],
  ] as const)('translates the end %j to %j', (end, expected) => {
    const result = ended(end);
    expect(result).toMatchObject({ ...expected, signal: 'signal' in end ? end.signal : null, hostId: 'h1' });
    expect(wireResultSchema.parse(JSON.parse(JSON.stringify(result)))).toEqual(JSON.parse(JSON.stringify(result)));
  });

  test('becomes a cancellation when a cancel came with the end, and keeps its output', () => {
    const withheld = { type: 'email', reason: 'matched' } as const;
    for (const own of [
      sampleResult('failure', { stdout: 'so far', exitCode: 7 }),
      sampleResult('error', { stdout: 'so far' }),
      sampleResult('blocked', { stdout: 'so far', blocked: withheld }),
    ])
      expect(toCancelled(own, 'changed my mind')).toEqual({
        ...sampleResult('cancellation', { stdout: 'so far', cancelReason: 'changed my mind' }),
        ...(own.outcome === 'blocked' && { blocked: withheld }),
      });
  });

  test('is `blocked` if a rule withheld output, unless the command was stopped or lost', () => {
    const blocked = { type: 'email', reason: 'too-slow' } as const;
    expect(withBlocked(sampleResult('failure', { exitCode: 7 }), blocked)).toEqual(
      sampleResult('blocked', { exitCode: 7, blocked }),
    );
    for (const outcome of ['timeout', 'lost', 'error'] as const)
      expect(withBlocked(sampleResult(outcome), blocked)).toEqual({ ...sampleResult(outcome), blocked });
  });
});
