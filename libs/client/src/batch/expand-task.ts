import { createHash } from 'node:crypto';
import type { SessionSpec } from '@shellfleet/protocol';
import type { Task } from './task.ts';

/** One run of a task of a batch. */
export interface TaskRepeat {
  /** Id of the run, unique in the batch: that of the task, or `<task>#<repeat>` when each task is repeated. */
  id: string;
  /** The task with the shared options. It is not checked yet. */
  task: Task;
  /** Number of the run, from 1. */
  repeat: number;
}

interface Common {
  spec?: SessionSpec | undefined;
  timeoutMs?: number | undefined;
  deadlineMs?: number | undefined;
}

/** Returns the runs of a task, with the shared options. A value that is no task is run once. */
export function expandTask(task: Task, repeats: number, common: Common): TaskRepeat[] {
  if (typeof task !== 'object' || task === null) return [{ id: 'undefined', task, repeat: 1 }];
  const whole = withCommon(task, common);
  const id = String(task.id);
  if (repeats === 1) return [{ id, task: whole, repeat: 1 }];
  return Array.from({ length: repeats }, (_, index) => ({
    ...{ id: `${id}#${index + 1}`, task: whole, repeat: index + 1 },
  }));
}

/** Returns the task with the shared options. A value that is no task is returned unchanged. */
export function withCommon(task: Task, { spec, timeoutMs, deadlineMs }: Common): Task {
  if (typeof task !== 'object' || task === null) return task;
  const merged = mergeSpecs(spec, task.spec);
  return {
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...task,
    ...(merged === undefined ? {} : { spec: merged }),
  };
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

/** Returns the id of a run's session, which is the same for each driver of this batch. */
export function taskSessionId(batch: string, id: string): string {
  const readable = id.replaceAll(/[^A-Za-z0-9._-]/g, '_').slice(0, 24);
  const hash = createHash('sha256').update(id).digest('hex').slice(0, 16);
  return `batch-${batch}-${readable}-${hash}`;
}
