import type { PrefixRule } from '@shellfleet/protocol';
import type { CommandWords } from './plain-script.ts';
import { startsNothing } from './starts-nothing.ts';

/**
 * Returns a rule that allows a command by all of its words. Returns undefined if the rule would allow more than a
 * person sees.
 */
export function amendmentFor(command: CommandWords): PrefixRule | undefined {
  const pattern = command.map(({ text }) => text);
  if (!command.every(({ literal, text }) => literal && text.length > 0 && text.length <= 1_024)) return undefined;
  // A name with a path is not on the list, because the session may put another program at the path, even after the
  // answer.
  if (pattern.length > 64 || !startsNothing(pattern[0] ?? '')) return undefined;
  return { pattern, decision: 'allow' };
}
