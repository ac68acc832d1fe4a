import type { z } from 'zod';

/** One field that was refused: where it is, why, and the limit it broke. Never the value itself. */
export interface FieldIssue {
  path: string;
  message: string;
}

/** What zod says of a field, in our words. */
export function toFieldIssues(issue: z.core.$ZodIssue): FieldIssue[] {
  const path = issue.path.map(String).join('.');
  if (issue.code !== 'unrecognized_keys') return [{ path, message: issue.message }];
  return issue.keys.map((key) => ({ path: path === '' ? key : `${path}.${key}`, message: 'unknown field' }));
}
