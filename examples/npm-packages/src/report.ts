import type { BatchTotals, TaskResult } from '@shellfleet/client';

/** Returns one line for a task that has ended. */
export function describeResult({ id, outcome, results, error, durationMs }: TaskResult, version: string): string {
  const last = results.at(-1);
  const seconds = (durationMs / 1000).toFixed(1);
  const label = `${`${id} ${version}`.padEnd(24)} ${seconds.padStart(5)} s`;
  if (outcome === 'success') return `✓ ${label}  ${last?.stdout.trim()}`;
  return `✗ ${label}  ${outcome}: ${error?.message ?? reasonIn(last?.stderr ?? '')}`;
}

export function describeTotals({ tasks, success }: BatchTotals, tookMs: number): string {
  return `${tasks} packages: ${success} passed, ${tasks - success} failed, in ${(tookMs / 1000).toFixed(1)} s`;
}

/** Returns the line of a stack trace that names the error. */
function reasonIn(stderr: string): string {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '');
  return lines.find((line) => /^\w*(?:Error|Exception)\b/.test(line)) ?? lines.at(-1) ?? 'it printed no reason';
}
