import { InvalidArgumentError } from 'commander';
import type { z } from 'zod';

/** Returns a parser that refuses a value with the message of its schema. An empty variable counts as unset. */
export const checkedBy =
  (schema: z.ZodType) =>
  (text: string): string => {
    const { error } = schema.safeParse(text);
    if (text !== '' && error !== undefined) throw new InvalidArgumentError(`It ${error.issues[0]?.message}.`);
    return text;
  };
