import type { Result } from '@shellfleet/protocol';
import { type TaskResult, type TaskVerdict, verdictOf } from '../batch/task-result.ts';

/** Time for which a session of a task had a slot of a host, in ms since 1970 by the clock of Redis. */
interface HostStay {
  hostId: string;
  from: number;
  to: number;
}

/** The numbers of a task that a report shows. Times of commands are those of the last attempt. */
export interface TaskFacts {
  id: string;
  task: string;
  verdict: TaskVerdict;
  score: number | undefined;
  attempts: number;
  /** When the batch began the task, in ms since 1970 by the clock of its machine. */
  startedAt: number;
  durationMs: number;
  /** Time for which the sessions of the commands waited for a slot of a host. */
  queueMs: number;
  /** Time for which the commands ran. */
  runMs: number;
  /** The rest of the duration: opening shells, moving files, storing Results, earlier attempts. */
  restMs: number;
  cpuMs: number | undefined;
  peakMemoryBytes: number | undefined;
  outputBytes: number;
  /** The host of the last command that has one. */
  hostId: string | undefined;
  stays: HostStay[];
}

/** Returns the commands of the last attempt at a task, in their order. */
export const commandsOf = ({ setup = [], results, grade }: TaskResult): Result[] => [
  ...setup,
  ...results,
  ...(grade === undefined ? [] : [grade]),
];

export function factsOf(result: TaskResult): TaskFacts {
  const { id, task, score, attempts, durationMs, outputBytes, cpuMs, peakMemoryBytes } = result;
  const commands = commandsOf(result);
  const runMs = sum(commands.map(({ timings }) => timings.runMs));
  const queueMs = queueMsOf(commands);
  return {
    ...{ id, task, score, attempts, durationMs, outputBytes, cpuMs, peakMemoryBytes, queueMs, runMs },
    verdict: verdictOf(result),
    startedAt: Date.parse(result.startedAt),
    restMs: Math.max(0, durationMs - runMs - queueMs),
    hostId: commands.findLast(({ hostId }) => hostId !== null)?.hostId ?? undefined,
    stays: staysOf(commands),
  };
}

function queueMsOf(commands: readonly Result[]): number {
  const parts = commands.flatMap(({ receipt }) => receipt?.parts ?? []);
  if (parts.length === 0) return commands[0]?.timings.queuedMs ?? 0;
  return sum(parts.filter(({ step }) => step === 'slot').map(({ ms }) => ms));
}

/** Returns a stay for each session. Commands without a receipt, or that never started, are left out. */
function staysOf(commands: readonly Result[]): HostStay[] {
  const stays = new Map<string, HostStay>();
  for (const { sessionId, hostId, receipt, timings } of commands) {
    if (hostId === null || receipt?.startedAt === undefined) continue;
    const to = Date.parse(receipt.storedAt);
    const known = stays.get(sessionId);
    if (known !== undefined) known.to = Math.max(known.to, to);
    else stays.set(sessionId, { hostId, from: Date.parse(receipt.startedAt) - timings.startMs, to });
  }
  return [...stays.values()];
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
