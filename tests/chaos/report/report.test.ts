import { describe, expect, test } from 'vitest';
import type { RoundReport } from '../drive/run-round.ts';
import type { ClientEvent } from '../history/history.ts';
import { renderHtml } from './render-html.ts';
import { summarize } from './summarize.ts';

const result = (op: string, at: number): ClientEvent => ({
  at,
  op,
  type: 'result',
  result: {
    outcome: 'success',
    exitCode: 0,
    head: '',
    stdout: { bytes: 0, sha256: '' },
    stderr: { bytes: 0, sha256: '' },
    truncated: false,
    totals: { stdoutBytes: 0, stderrBytes: 0 },
    shell: { state: 'kept', epoch: 1 },
    hostId: 'h1',
  },
});

const report: RoundReport = {
  kind: 'a <kind>',
  seed: 7,
  startedAt: 0,
  endedAt: 10_000,
  logs: {},
  violations: [{ rule: 'lost', session: 'c1-0', text: 'c1-0.1 & co' }],
  history: {
    forgets: false,
    begun: [],
    sessions: [],
    clientEvents: [
      { at: 100, op: 'c1-0.0', type: 'submit' },
      { at: 110, op: 'c1-0.0', type: 'accepted', commandId: 'c1-0.A' },
      result('c1-0.0', 900),
      { at: 1_000, op: 'c1-0.1', type: 'submit' },
      result('c1-0.1', 2_750),
      { at: 1_000, op: 'c1-1.0', type: 'submit' },
      result('c1-1.0', 1_200),
    ],
    faults: [
      { kind: 'worker-kill', target: 'h1', from: 1_500, to: 2_000 },
      { kind: 'dockerd-restart', target: '', from: 0, to: 0, notRun: 'not ours' },
    ],
  },
};

describe('the report', () => {
  test('counts faults, and measures the time until the next Result of busy sessions', () => {
    const { totals, kinds } = summarize(7, [report]);
    expect(totals).toEqual({ commands: 1, results: 3, refusals: 0, losses: 0, faults: 1, violations: 1 });
    expect(kinds.filter(({ times, notRun }) => times > 0 || notRun.length > 0)).toEqual([
      {
        kind: 'worker-kill',
        event: 'worker `kill -9` or upgrade, host alive',
        times: 1,
        notRun: [],
        recoveryMs: { count: 1, p50: 750, p95: 750, most: 750 },
      },
      { kind: 'dockerd-restart', event: 'Docker daemon restart', times: 0, notRun: ['not ours'], recoveryMs: null },
    ]);
  });

  test('is one page with seed, faults and violations, and shows no text as HTML', () => {
    const html = renderHtml(summarize(7, [report]));
    expect(html).toContain('--seed 7');
    expect(html).toContain('a &lt;kind&gt;');
    expect(html).toContain('c1-0.1 &amp; co');
    expect(html).toContain('worker-kill of h1, second 1.5 to 2.0');
    expect(html).toContain('not run: not ours');
    expect(html).not.toMatch(/\b(src|href)=|@import|<script/);
  });
});
