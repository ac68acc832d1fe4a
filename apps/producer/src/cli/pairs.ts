import { InvalidArgumentError } from 'commander';

/** Collects the values of a repeatable flag `name=value`. */
export function collectPair(text: string, before: Record<string, string> = {}): Record<string, string> {
  const equals = text.indexOf('=');
  if (equals < 1) throw new InvalidArgumentError('Give it as NAME=value.');
  return { ...before, [text.slice(0, equals)]: text.slice(equals + 1) };
}
