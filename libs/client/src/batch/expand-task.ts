import { createHash } from 'node:crypto';
import type { SessionSpec } from '@shellfleet/protocol';
import type { Task } from './task.ts';

/** Returns the task `repeats` times with the shared options. A value that is no task is returned unchanged. */
export function expandTask(task: Task, repeats: number, spec: SessionSpec | undefined, timeoutMs?: number): Task[] {
  if (typeof task !== 'object' || task === null) return [task];
  const merged = mergeSpecs(spec, task.spec);
  const whole = {
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...task,
    ...(merged === undefined ? {} : { spec: merged }),
  };
  if (repeats === 1) return [whole];
  return Array.from({ length: repeats }, (_, index) => ({ ...whole, id: `${task.id}#${index + 1}` }));
}

/** Fields of a spec that are merged by key. */
const PARTIAL = ['env', 'secrets', 'labels', 'hosts', 'limits', 'output'] as const;

/** Returns `common` with the fields of `own`. PARTIAL fields are merged by key, other fields are replaced. */
function mergeSpecs(common: SessionSpec | undefined, own: SessionSpec | undefined): SessionSpec | undefined {
  if (common === undefined || own === undefined) return own ?? common;
  // A spec that is no object is returned unchanged, because a later check refuses it.
  if (typeof own !== 'object' || own === null) return own;
  const merged: Record<string, unknown> = { ...common, ...own };
  for (const field of PARTIAL) {
    const [of, over] = [common[field], own[field]];
    if (isObject(of) && isObject(over)) merged[field] = { ...of, ...over };
  }
  return merged as SessionSpec;
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the id of a task's session, which is the same for each driver of this batch. */
export function taskSessionId(batch: string, taskId: unknown): string {
  const id = String(taskId);
  const readable = id.replaceAll(/[^A-Za-z0-9._-]/g, '_').slice(0, 24);
  const hash = createHash('sha256').update(id).digest('hex').slice(0, 16);
  return `batch-${batch}-${readable}-${hash}`;
}
