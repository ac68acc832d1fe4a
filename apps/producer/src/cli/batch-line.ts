import type { BatchProgress, Result, TaskResult } from '@shellfleet/client';
import { toPrintable } from '@shellfleet/protocol';

/** Returns the line about a task that has ended. */
export function describeTask({ id, outcome, passed, score, results, grade, error, durationMs }: TaskResult): string {
  const exitCode = results.at(-1)?.exitCode;
  const detail = error?.message ?? (exitCode === null || exitCode === undefined ? '' : `exit ${exitCode}`);
  const graded =
    grade === undefined || score === undefined ? '' : `${passed ? 'passed' : describeNotPassed(grade)}, score ${score}`;
  // JSON quoting keeps control characters in ids from outside away from the terminal.
  const parts = [
    JSON.stringify(id).slice(1, -1),
    outcome,
    detail && JSON.stringify(detail).slice(1, -1),
    graded,
    `${durationMs} ms`,
  ];
  return toPrintable(parts.filter((part) => part !== '').join('  '));
}

const describeNotPassed = ({ outcome }: Result) => (outcome === 'timeout' ? 'not passed (timeout)' : 'not passed');

/** Returns how many outputs of an ended task could not be fetched. */
export function countMissing({ outputs = {} }: Pick<TaskResult, 'outputs'>): number {
  return Object.values(outputs).filter(({ error }) => error !== undefined).length;
}

/** Returns the sentence about outputs that are missing here, with a space before it. Empty if there is none. */
export function describeMissing(count: number): string {
  if (count === 0) return '';
  return ` ${count} ${count === 1 ? 'output is' : 'outputs are'} missing; \`outputs\` of the results says why.`;
}

/** Returns the line that shows how far a batch is. */
export function describeProgress(progress: BatchProgress): string {
  const { done, passed, failed, infrastructure, cancelled, skipped, running, queued, perSecond, etaMs } = progress;
  const { slowest } = progress;
  const counts = [
    `${passed} passed`,
    `${failed} failed`,
    `${infrastructure} infrastructure`,
    ...(cancelled > 0 ? [`${cancelled} cancelled`] : []),
    `${running} running`,
    ...(queued === undefined ? [] : [`${queued} queued`]),
  ];
  const all = queued === undefined ? '' : ` of ${skipped + done + running + queued}`;
  return [
    `${skipped + done}${all} tasks: ${counts.join(', ')}`,
    `${perSecond.toFixed(perSecond < 10 ? 1 : 0)}/s`,
    ...(etaMs === undefined ? [] : [`${describeTime(etaMs)} left`]),
    ...(slowest === undefined ? [] : [`slowest ${slowest.id} ${describeTime(slowest.forMs)}`]),
  ].join(' · ');
}

/** Returns a time in its two largest units: `45 s`, `3 min 20 s`, `2 h 5 min`. */
function describeTime(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
