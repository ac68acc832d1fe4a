import type { z } from 'zod';

/** One invalid field: its path, the reason, and the limit that it exceeds. It never contains the value. */
export interface FieldIssue {
  path: string;
  message: string;
}

/** Converts an issue of zod. Each unknown key becomes an issue of its own. */
export function toFieldIssues(issue: z.core.$ZodIssue): FieldIssue[] {
  const path = issue.path.map(String).join('.');
  if (issue.code !== 'unrecognized_keys') return [{ path, message: issue.message }];
  return issue.keys.map((key) => ({ path: path === '' ? key : `${path}.${key}`, message: 'unknown field' }));
}
