import { z } from 'zod';

/** Input of the shell tool: exactly one of a command and a restart. */
export const shellInputSchema = z
  .object({
    command: z.string().nullish().describe('Shell command to run.'),
    restart: z.boolean().nullish().describe('Whether to replace the shell by a fresh one.'),
  })
  .check(({ value: { command, restart }, issues }) => {
    const refuse = (message: string) => issues.push({ code: 'custom', message, path: [], input: message });
    const hasCommand = typeof command === 'string';
    if (!hasCommand && !restart) refuse("Shell tool requires either 'command' or 'restart'.");
    if (hasCommand && restart) refuse("Specify only one of 'command' or 'restart'.");
  });

export type ShellInput = z.output<typeof shellInputSchema>;
