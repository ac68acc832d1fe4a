import { ShellfleetError, toFieldIssues } from '@shellfleet/protocol';
import type { z } from 'zod';

/** Parses options. Throws SESSION_SPEC_INVALID with a sentence for each invalid option, which begins with its name. */
export function parsePolicyOptions<T extends z.ZodType>(schema: T, options: unknown): z.output<T> {
  const parsed = schema.safeParse(options);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.flatMap(toFieldIssues);
  const sentences = issues.map(({ path, message }) =>
    path === '' ? message : `${path} ${message === 'unknown field' ? 'is not an option' : message}.`,
  );
  throw new ShellfleetError('SESSION_SPEC_INVALID', sentences.join(' '), { issues });
}
