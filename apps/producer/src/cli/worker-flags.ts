import { POLICY_NAMES } from '@shellfleet/protocol';
import { InvalidArgumentError, Option } from 'commander';

export function slotsFlag(): Option {
  return new Option('--slots <n>', 'open sessions at once, of each worker').env('SHELLFLEET_SLOTS');
}

/** Checks policies before anything starts. The worker checks them again. */
export function policiesFlag(): Option {
  return new Option('--policies <names>', `execution policies that a worker offers: ${POLICY_NAMES.join(', ')}`)
    .env('SHELLFLEET_POLICIES')
    .argParser(toPolicies);
}

function toPolicies(text: string): string {
  const names = text.split(',').map((name) => name.trim());
  const known: readonly string[] = POLICY_NAMES;
  if (names.some((name) => !known.includes(name))) {
    throw new InvalidArgumentError(`Give one or more of ${POLICY_NAMES.join(', ')}, separated by commas.`);
  }
  return text;
}
