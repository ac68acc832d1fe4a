import { resolve, sep } from 'node:path';
import {
  durationSchema,
  type SessionSpec,
  sandboxPathSchema,
  scriptSchema,
  sessionSpecSchema,
} from '@shellfleet/protocol';
import { z } from 'zod';

/** One or several scripts that run in a separate session. */
export interface Task {
  /** Id of the task, 1 to 256 characters, unique in the batch. */
  id: string;
  /** Scripts that run in order, up to the first that does not succeed. At most 1,000. */
  script: string | string[];
  /**
   * Spec of the session, such as its `image`.
   * @default every default of a session
   */
  spec?: SessionSpec | undefined;
  /**
   * Sandbox path → path on this machine. Uploaded before the first script. `{id}` and `{repeat}` in a local path are
   * replaced, as in `outputs`.
   */
  files?: Record<string, string> | undefined;
  /** Scripts that prepare the sandbox before `script`. When one does not succeed, nothing else runs. At most 1,000. */
  setup?: string[] | undefined;
  /**
   * Sandbox path → path on this machine, for files and directories that are fetched when the scripts have ended, also
   * when one failed. `{id}` in a local path is replaced by the id of the task, as a name of a file, and `{repeat}` by
   * the number of the repeat. What is at a path with `{id}` is replaced; without it, a directory is merged. With
   * `repeats` each path needs `{repeat}`.
   */
  outputs?: Record<string, string> | undefined;
  /**
   * Script that decides whether the task passed: with exit code 0 it did. The last line of its stdout may be a score, a
   * number, or JSON: `{"pass": false, "score": 0.5}`. It runs after the scripts, also when one failed or timed out, in
   * their session. With `fresh` it runs in a fresh session of the same spec, which first gets `files`, `setup` and the
   * `outputs` at their paths in the sandbox. Then the local path of each output needs `{id}`.
   */
  grade?: string | { script: string; fresh?: boolean | undefined } | undefined;
  /**
   * Limit for each script in ms, 1 to 86,400,000.
   * @default `commandTimeoutMs` of the spec
   */
  timeoutMs?: number | undefined;
  /**
   * Limit for the whole task in ms, 1 to 86,400,000, with all attempts and all waiting.
   * @default `taskDeadlineMs` of the batch
   */
  deadlineMs?: number | undefined;
}

const scriptsSchema = z.array(scriptSchema).max(1_000, 'must hold at most 1000 scripts');
const localPathSchema = z.string('must be a path').min(1, 'must be a path');
const pathsSchema = z.record(sandboxPathSchema, localPathSchema, 'must be a record of paths');

/** Tells whether no local path lies in one with `{id}`, whose content is replaced. */
function areApart(outputs: Record<string, string>): boolean {
  const places = Object.values(outputs).map((local) => `${resolve(local)}${sep}`);
  return places.every((place, at) =>
    places.every((other, index) => at === index || !other.includes('{id}') || !place.startsWith(other)),
  );
}

const fieldsSchema = z.strictObject({
  id: z
    .string('must be a string')
    .min(1, 'must not be empty')
    .max(256, 'must be at most 256 characters')
    // In UTF-8, two ids with different lone surrogates would be the same.
    .refine((id) => id.isWellFormed(), 'is not valid Unicode (lone surrogate)')
    .meta({ description: 'Id of the task, 1 to 256 characters, unique in the batch.' }),
  script: z
    .union(
      [scriptSchema, z.array(scriptSchema).min(1, 'must hold a script').max(1_000)],
      'must be a script or a list of scripts',
    )
    .meta({ description: 'Scripts that run in order, up to the first that does not succeed. At most 1,000.' }),
  spec: sessionSpecSchema
    .optional()
    .meta({ description: 'Spec of the session, such as its `image`.', otherwise: 'every default of a session' }),
  files: pathsSchema.optional().meta({
    description:
      'Sandbox path → path on this machine. Uploaded before the first script. `{id}` and `{repeat}` in a ' +
      'local path are replaced, as in `outputs`.',
  }),
  setup: scriptsSchema.optional().meta({
    description:
      'Scripts that prepare the sandbox before `script`. When one does not succeed, nothing else runs. At ' +
      'most 1,000.',
  }),
  outputs: pathsSchema
    .refine(areApart, 'must not have a local path in another one with {id}')
    .optional()
    .meta({
      description:
        'Sandbox path → path on this machine, for files and directories that are fetched when the scripts ' +
        'have ended, also when one failed. `{id}` in a local path is replaced by the id of the task, as a ' +
        'name of a file, and `{repeat}` by the number of the repeat. What is at a path with `{id}` is ' +
        'replaced; without it, a directory is merged. With `repeats` each path needs `{repeat}`.',
    }),
  grade: z
    .union(
      [scriptSchema, z.strictObject({ script: scriptSchema, fresh: z.boolean('must be true or false').optional() })],
      'must be a script or { script, fresh? }',
    )
    .optional()
    .meta({
      description:
        'Script that decides whether the task passed: with exit code 0 it did. The last line of its stdout ' +
        'may be a score, a number, or JSON: `{"pass": false, "score": 0.5}`. It runs after the scripts, ' +
        'also when one failed or timed out, in their session. With `fresh` it runs in a fresh session of ' +
        'the same spec, which first gets `files`, `setup` and the `outputs` at their paths in the sandbox. ' +
        'Then the local path of each output needs `{id}`.',
    }),
  timeoutMs: durationSchema().optional().meta({
    description: 'Limit for each script in ms, 1 to 86,400,000.',
    otherwise: '`commandTimeoutMs` of the spec',
  }),
  deadlineMs: durationSchema().optional().meta({
    description: 'Limit for the whole task in ms, 1 to 86,400,000, with all attempts and all waiting.',
    otherwise: '`taskDeadlineMs` of the batch',
  }),
});
export type ParsedTask = z.infer<typeof fieldsSchema>;

/** Schema of a task. A fresh grade gets what is at the places of the outputs, so nothing else may write there. */
export const taskSchema = fieldsSchema
  .superRefine(({ outputs = {}, grade }, context) => {
    if (typeof grade !== 'object' || grade.fresh !== true) return;
    for (const [path, local] of Object.entries(outputs)) {
      if (resolve(local).includes('{id}')) continue;
      const message = 'must contain {id}, because the fresh session of the grade gets what is there';
      context.addIssue({ code: 'custom', path: ['outputs', path], message });
    }
  })
  .meta({ id: 'Task', description: 'One or several scripts that run in a separate session.' });

/** Returns the schema of a task that is repeated: with repeats, each place of an output must be that of one repeat. */
export function repeatedTaskSchema(repeats: number): typeof taskSchema {
  if (repeats === 1) return taskSchema;
  return taskSchema.superRefine(({ outputs = {} }, context) => {
    for (const [path, local] of Object.entries(outputs)) {
      if (local.includes('{repeat}')) continue;
      const message = 'must contain {repeat}, because each task is repeated';
      context.addIssue({ code: 'custom', path: ['outputs', path], message });
    }
  });
}
