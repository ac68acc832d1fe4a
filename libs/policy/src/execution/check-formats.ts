import type { FieldIssue, ResolvedSessionSpec } from '@shellfleet/protocol';
import { withSetting } from './refusal.ts';

const SETTING = 'SHELLFLEET_ALLOW_UNREDACTED=1, or allow.redactFormats of SHELLFLEET_CONFIG';

/** Returns an issue if the spec switches off the built-in formats and the operator does not allow that. */
export function checkFormats(
  { redactFormats }: Pick<ResolvedSessionSpec, 'redactFormats'>,
  allowances: { redactFormats?: boolean },
): FieldIssue[] {
  if (redactFormats || allowances.redactFormats === true) return [];
  const message = 'this host replaces tokens of well-known formats in all output';
  return [{ path: 'redactFormats', message: withSetting(message, SETTING) }];
}
