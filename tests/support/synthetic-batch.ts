import type { Result, TaskResult } from '@shellfleet/client';
import { sampleResult } from '@shellfleet/protocol/test-support';
import { createRandom, type Random } from './random.ts';

export interface SyntheticOptions {
  /** Number of tasks. */
  tasks: number;
  repeats?: number;
  hosts?: number;
  /** Slots of each host. */
  slots?: number;
  seed?: number;
  /** Text that commands of tasks that fail print before their last lines. */
  print?: string;
}

const BEGIN = Date.parse('2026-03-02T08:00:00Z');

/** Last lines of tasks that fail, each with its share. */
const CAUSES: readonly [exitCode: number, text: string][] = [
  [1, 'test/date.test.js\n  1) parses a leap day\nAssertionError: expected 29 to equal 28'],
  [1, 'FAILED tests/test_io.py::test_read - FileNotFoundError: /data/input-17.csv'],
  [2, "src/main.c:41:9: error: 'size' undeclared\nmake: *** [Makefile:12: main.o] Error 1"],
  [137, 'building 4 of 9\nKilled'],
];

/**
 * Yields the results of a batch that a simulated fleet runs, in the order of their ends. Equal options yield the same.
 */
export function* syntheticBatch(options: SyntheticOptions): Generator<TaskResult> {
  const { tasks, repeats = 1, hosts = 4, slots = 16, seed = 1 } = options;
  const random = createRandom(seed);
  const free = Array.from({ length: hosts * slots }, (_, slot) => ({ host: `host-${(slot % hosts) + 1}`, at: BEGIN }));
  const running: { end: number; result: TaskResult }[] = [];
  for (let n = 0; n < tasks * repeats; n++) {
    free.sort((a, b) => a.at - b.at);
    const slot = free[0];
    if (slot === undefined) return;
    const end = simulate(n, slot, random, options);
    slot.at = end.end;
    running.push(end);
    running.sort((a, b) => a.end - b.end);
    while ((running[0]?.end ?? Number.POSITIVE_INFINITY) < (free[1]?.at ?? 0))
      yield (running.shift() as typeof end).result;
  }
  for (const { result } of running) yield result;
}

function simulate(
  n: number,
  slot: { host: string; at: number },
  random: Random,
  { repeats = 1, print = '' }: SyntheticOptions,
): { end: number; result: TaskResult } {
  const [task, repeat] = [`task-${String(Math.floor(n / repeats) + 1).padStart(5, '0')}`, (n % repeats) + 1];
  // The batch begins a task some seconds before a slot is free.
  const queuedMs = Math.min(slot.at - BEGIN, Math.round(3_000 * random.next() ** 3));
  const startedAt = new Date(slot.at - queuedMs).toISOString();
  const startMs = 180 + random.below(400);
  const runMs = Math.round(400 * (1 - Math.log(1 - random.next()) * 12) * (random.chance(0.02) ? 9 : 1));
  const began = slot.at + startMs;
  const ended = began + runMs;
  const skill = Math.floor(n / repeats) % 10;
  const passed = random.chance(skill < 6 ? 0.97 : skill < 9 ? 0.8 : 0.1);
  const isLost = random.chance(0.004);
  const [exitCode, text] = random.pick(CAUSES as [(typeof CAUSES)[number]]);
  const times = {
    hostId: slot.host,
    timings: { queuedMs, startMs, runMs, totalMs: queuedMs + startMs + runMs },
    receipt: {
      ...{ acceptedAt: startedAt, startedAt: new Date(began).toISOString() },
      ...{ storedAt: new Date(ended).toISOString(), totalMs: queuedMs + startMs + runMs },
      parts: [
        { step: 'slot', ms: queuedMs, clock: 'redis' },
        { step: 'opening', ms: startMs, clock: 'host' },
        { step: 'running', ms: runMs, clock: 'host' },
      ],
    },
  } satisfies Partial<Result>;
  const output = isLost ? '' : passed ? 'ok\n' : `${print}${text}\n`;
  const outcome = isLost ? 'lost' : passed ? 'success' : 'failure';
  const about = { commandId: `batch.${n}`, sessionId: `batch.${n}`, output, ...times };
  const results = [{ ...sampleResult(outcome, outcome === 'failure' ? { exitCode } : {}), ...about } as Result];
  const id = repeats === 1 ? task : `${task}#${repeat}`;
  const result = {
    ...{ id, task, repeat, passed: outcome === 'success', score: passed ? 1 : 0, outcome, sessionId: `batch.${n}` },
    ...{ results, attempts: isLost ? 3 : 1, startedAt },
    ...{ durationMs: queuedMs + startMs + runMs, outputBytes: Buffer.byteLength(output) + random.below(4_000) },
    ...{ cpuMs: Math.round(runMs * (0.4 + random.next())), peakMemoryBytes: 2e7 + random.below(3e8) },
  } satisfies TaskResult;
  return { end: ended, result };
}
