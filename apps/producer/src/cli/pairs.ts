import { InvalidArgumentError } from 'commander';

/** Collects a flag that is given as `name=value`, once or again. */
export function collectPair(text: string, before: Record<string, string> = {}): Record<string, string> {
  const equals = text.indexOf('=');
  if (equals < 1) throw new InvalidArgumentError('Give it as NAME=value.');
  return { ...before, [text.slice(0, equals)]: text.slice(equals + 1) };
}
