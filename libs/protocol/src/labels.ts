import { z } from 'zod';
import { LIMITS } from './limits.ts';

const LABEL_PATTERN = /^[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$/;

const labels = (most: number) =>
  z.record(z.string(), z.string('must be a string'), 'must be an object of strings').superRefine((given, context) => {
    const entries = Object.entries(given);
    for (const [name, value] of entries) {
      if (LABEL_PATTERN.test(name) && LABEL_PATTERN.test(value)) continue;
      const message =
        'must have a name and a value of 1 to 63 of A-Z a-z 0-9 . _ / - that begin and end with a letter or digit';
      context.addIssue({ code: 'custom', path: [name.slice(0, 64)], message });
    }
    if (entries.length > most) {
      context.addIssue({ code: 'custom', message: `holds ${entries.length} labels; the limit is ${most}` });
    }
  });

/** Names and values by which sessions are listed, not placed. They are stored in clear, so they must hold no secret. */
export const labelsSchema = labels(LIMITS.labels);

/** Labels that the host of a session must have. They are part of the name of a queue, so a session has few of them. */
export const neededLabelsSchema = labels(LIMITS.neededLabels);

/** Returns labels as text: `name=value`, in the order of their names, with a separator between them. */
export const labelsText = (given: Readonly<Record<string, string>>, separator: string) =>
  Object.entries(given)
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join(separator);
