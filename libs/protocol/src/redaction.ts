import { z } from 'zod';
import { LIMITS } from './limits.ts';

/** A rule that replaces or blocks text in a session's output. */
export interface RedactionRule {
  /**
   * A detector (`email`, `credit_card`, `ip`, `mac_address`, `url`), a kind of token (docs/output.md lists them), or a
   * name of your own with a `pattern`.
   * @limit 1 to 64 letters, digits, `_` or `-`, the first a letter
   */
  type: string;
  /**
   * `redact` writes `[REDACTED_TYPE]`, `mask` the last characters, `hash` a keyed hash; `block` withholds all further
   * output.
   */
  strategy: 'block' | 'redact' | 'mask' | 'hash';
  /**
   * Regular expression of a rule of your own.
   * @default none: the detector of this type
   * @limit 1 to 1,000 characters
   */
  pattern?: string | undefined;
}

/** Checks the form of a rule. libs/policy checks whether the type needs a pattern, and whether the pattern is valid. */
export const redactionRuleSchema = z
  .strictObject(
    {
      type: z
        .string('must be a string')
        .regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/, 'must be 1 to 64 letters, digits, _ or -, and begin with a letter')
        .meta({
          description:
            'A detector (`email`, `credit_card`, `ip`, `mac_address`, `url`), a kind of token (docs/output.md ' +
            'lists them), or a name of your own with a `pattern`.',
          limit: '1 to 64 letters, digits, `_` or `-`, the first a letter',
        }),
      strategy: z.enum(['block', 'redact', 'mask', 'hash'], "must be 'block', 'redact', 'mask' or 'hash'").meta({
        description:
          '`redact` writes `[REDACTED_TYPE]`, `mask` the last characters, `hash` a keyed hash; `block` ' +
          'withholds all further output.',
      }),
      pattern: z
        .string('must be a string')
        .min(1, 'must not be empty')
        .max(LIMITS.redactionPatternChars, `must be at most ${LIMITS.redactionPatternChars} characters`)
        .optional()
        .meta({
          description: 'Regular expression of a rule of your own.',
          otherwise: 'none: the detector of this type',
          limit: '1 to 1,000 characters',
        }),
    },
    'must be an object: { type, strategy, pattern? }',
  )
  .meta({ id: 'RedactionRule', description: "A rule that replaces or blocks text in a session's output." });

export const redactionRulesSchema = z
  .array(redactionRuleSchema, 'must be an array of rules')
  .max(LIMITS.redactionRules, `must hold at most ${LIMITS.redactionRules} rules`);
