import type { z } from 'zod';

/** One invalid field, with the reason and the limit that it exceeds. It never contains the value. */
export interface FieldIssue {
  path: string;
  message: string;
}

/** Longest key in a path. Callers choose the keys, which may have any length. */
const LONGEST_KEY_CHARS = 64;

/**
 * Converts an issue of zod. If a value has several possible forms, reports the invalid fields of the only form that
 * fits apart from its fields.
 */
export function toFieldIssues(issue: z.core.$ZodIssue): FieldIssue[] {
  const toPath = (keys: readonly PropertyKey[]) => keys.map((key) => String(key).slice(0, LONGEST_KEY_CHARS)).join('.');
  if (issue.code === 'invalid_union') {
    const meant = issue.errors.filter((form) =>
      form.every(({ code, path }) => path.length > 0 || code === 'unrecognized_keys'),
    );
    const [own, ...others] = meant;
    if (own !== undefined && others.length === 0)
      return own.flatMap((inner) => toFieldIssues({ ...inner, path: [...issue.path, ...inner.path] }));
  }
  if (issue.code !== 'unrecognized_keys') return [{ path: toPath(issue.path), message: issue.message }];
  return issue.keys.map((key) => ({ path: toPath([...issue.path, key]), message: 'unknown field' }));
}
