import { createHash } from 'node:crypto';
import type { SessionSpec } from '@shellfleet/protocol';
import type { Task } from './task.ts';

/** A task as the batch runs it: with the options that all tasks share, `repeats` times. A value that is no task is left to its check. */
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

/** Fields of which a spec may give a part. */
const PARTIAL = ['env', 'secrets', 'labels', 'limits', 'output'] as const;

/** `own` over `common`. Of variables, secrets, labels, limits and output bounds, single ones replace those of `common`; other fields as a whole. */
function mergeSpecs(common: SessionSpec | undefined, own: SessionSpec | undefined): SessionSpec | undefined {
  if (common === undefined || own === undefined) return own ?? common;
  // A spec that is no object is left to its check.
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

/** The id of a task's session: the same for each driver of a batch of this name, another for each other task. */
export function taskSessionId(batch: string, taskId: unknown): string {
  const id = String(taskId);
  const readable = id.replaceAll(/[^A-Za-z0-9._-]/g, '_').slice(0, 24);
  const hash = createHash('sha256').update(id).digest('hex').slice(0, 16);
  return `batch-${batch}-${readable}-${hash}`;
}
