import type { Result } from '@shellfleet/client';
import type { CliOutput } from './terminal.ts';

/** Reports how many tokens of well-known formats were replaced in output, because that breaks a patch, for example. */
export async function sayRedactedFormats(
  terminal: Pick<CliOutput, 'say'>,
  results: Iterable<Pick<Result, 'redactions'>>,
): Promise<void> {
  const found = new Map<string, number>();
  for (const { redactions } of results)
    for (const [type, times] of Object.entries(redactions))
      if (type !== 'secret') found.set(type, (found.get(type) ?? 0) + times);
  if (found.size === 0) return;
  // Loading the kinds of tokens loads all of redaction, which few commands need.
  const { TOKEN_TYPES } = await import('@shellfleet/policy');
  const formats = [...found].filter(([type]) => TOKEN_TYPES.has(type));
  if (formats.length === 0) return;
  const count = formats.reduce((sum, [, times]) => sum + times, 0);
  const kinds = formats.map(([type, times]) => `${type} ${times}`).join(', ');
  terminal.say(
    `${count} ${count === 1 ? 'token of a well-known format was' : 'tokens of well-known formats were'} replaced in the output (${kinds}). A session with --keep-formats shows them, where its host allows it.`,
  );
}
