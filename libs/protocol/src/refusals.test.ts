import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { toFieldIssues } from './field-issues.ts';
import { runOptionsSchema } from './run-options.ts';
import { sessionSpecSchema } from './session.ts';

const WRONG = [
  null,
  true,
  'x\0',
  -1,
  0.5,
  Number.NaN,
  2 ** 60,
  'x'.repeat(200_000),
  [],
  {},
  [{}],
  { a: 5 },
  [5],
  () => {},
];

const OPTIONS: [string, z.ZodType, string[]][] = [
  ['a spec', sessionSpecSchema, Object.keys(sessionSpecSchema.in.shape)],
  ['options', runOptionsSchema, Object.keys(runOptionsSchema.shape)],
];

describe('the refusal of a wrong field', () => {
  test.each(OPTIONS)('names the field in %s and states what is allowed', (_name, schema, fields) => {
    const inner = {
      output: ['maxBytes', 'maxLines', 'keep', 'streamBytes'],
      limits: ['memoryBytes', 'cpus', 'pids', 'cpuTimeSeconds', 'diskBytes', 'fileSizeBytes'],
    };
    const vague: string[] = [];
    const look = (path: string, value: unknown) => {
      for (const issue of schema.safeParse(value).error?.issues.flatMap(toFieldIssues) ?? [])
        if (!issue.path.startsWith(path) || /^(?:Invalid|Too|Expected|Unrec)/i.test(issue.message))
          vague.push(`${issue.path}: ${issue.message}`);
    };
    for (const wrong of WRONG) {
      for (const field of fields) look(field, { [field]: wrong });
      for (const [field, own] of Object.entries(inner))
        if (fields.includes(field)) for (const name of own) look(field, { [field]: { [name]: wrong } });
    }
    expect([...new Set(vague)]).toEqual([]);
  });
});
