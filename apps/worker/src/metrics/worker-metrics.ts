import { type EntryPayload, OUTCOMES, type Outcome, type ToolErrorCode, type WireResult } from '@shellfleet/protocol';
import type { CallCounter } from '@shellfleet/redis';
import type { MetricsRegistry } from './metrics-registry.ts';

const STARTS = ['warm', 'cold', 'failed'] as const;
const VERDICTS = ['passed', 'refused'] as const;
const DENIERS = ['rules', 'approver'] as const;

/**
 * Counts what happens in a worker. All else is read when somebody asks for the metrics. A worker without metrics has
 * none of these.
 */
export interface WorkerMetrics {
  readonly registry: MetricsRegistry;
  /** Counts an entry whose Result is stored. */
  entryEnded(kind: EntryPayload['type'], result: WireResult): void;
  /** Counts a command that ended while it was held for a person. This worker may not have its times. */
  heldEnded(result: WireResult): void;
  sessionOpened(start: (typeof STARTS)[number], ms: number): void;
  sessionHeld(ms: number): void;
  asked(): void;
  egress(verdict: (typeof VERDICTS)[number]): void;
  toolEnded(outcome: 'success' | ToolErrorCode, ms: number): void;
  readonly redis: CallCounter;
  /** Adds to the registry what is counted in plain numbers, because it happens too often for more. */
  addCounts(): void;
}

export function createWorkerMetrics(registry: MetricsRegistry): WorkerMetrics {
  const durations = registry.histogram('shellfleet_command_duration_seconds');
  const waits = registry.histogram('shellfleet_command_wait_seconds');
  const errors = registry.counter('shellfleet_errors_total');
  const denials = registry.counter('shellfleet_denials_total');
  const openings = registry.histogram('shellfleet_session_opening_seconds');
  const heldTimes = registry.histogram('shellfleet_session_held_seconds');
  const questions = registry.counter('shellfleet_questions_total');
  const requests = registry.counter('shellfleet_egress_requests_total');
  const toolCalls = registry.histogram('shellfleet_tool_call_duration_seconds');
  const entries = { command: noOutcomes(), file: noOutcomes(), restart: noOutcomes() };
  const output = { stdout: 0, stderr: 0 };
  let redactions = 0;
  const calls = new Map<string, number>();
  let failures = 0;
  // These series are there before their first event. Otherwise a rate would miss it. Error codes are too many for that.
  for (const outcome of OUTCOMES) {
    durations.zero({ outcome });
    waits.zero({ outcome });
  }
  for (const by of DENIERS) denials.inc({ by }, 0);
  for (const start of STARTS) openings.zero({ start });
  for (const verdict of VERDICTS) requests.inc({ verdict }, 0);
  toolCalls.zero({ outcome: 'success' });

  const commandEnded = ({ outcome, timings, totals, redactions: found }: WireResult) => {
    durations.observe({ outcome }, timings.runMs / 1_000);
    waits.observe({ outcome }, (timings.queuedMs + timings.startMs) / 1_000);
    output.stdout += totals.stdoutBytes;
    output.stderr += totals.stderrBytes;
    for (const rule in found) redactions += found[rule] ?? 0;
  };
  const countEnd = (kind: EntryPayload['type'], result: WireResult) => {
    entries[kind][result.outcome] += 1;
    if (result.outcome === 'error') errors.inc({ code: result.error.code });
    if (result.outcome === 'denial') denials.inc({ by: result.reason });
  };
  return {
    registry,
    entryEnded(kind, result) {
      countEnd(kind, result);
      if (kind === 'command') commandEnded(result);
    },
    heldEnded: (result) => countEnd('command', result),
    // Clocks may be set, and the sum of a histogram must not fall.
    sessionOpened: (start, ms) => openings.observe({ start }, Math.max(0, ms) / 1_000),
    sessionHeld: (ms) => heldTimes.observe(ms / 1_000),
    asked: () => questions.inc(),
    egress: (verdict) => requests.inc({ verdict }),
    toolEnded: (outcome, ms) => toolCalls.observe({ outcome }, ms / 1_000),
    redis: {
      called: (call) => void calls.set(call, (calls.get(call) ?? 0) + 1),
      failed() {
        failures += 1;
      },
    },
    addCounts() {
      for (const [kind, counts] of Object.entries(entries))
        for (const [outcome, count] of Object.entries(counts))
          registry.countTo('shellfleet_entries_total', { kind, outcome }, count);
      for (const [stream, bytes] of Object.entries(output))
        registry.countTo('shellfleet_output_bytes_total', { stream }, bytes);
      registry.countTo('shellfleet_redactions_total', {}, redactions);
      for (const [call, count] of calls) registry.countTo('shellfleet_redis_calls_total', { call }, count);
      registry.countTo('shellfleet_redis_failures_total', {}, failures);
    },
  };
}

const noOutcomes = () => Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])) as Record<Outcome, number>;
