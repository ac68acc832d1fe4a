import { z } from 'zod';
import { LIMITS } from './limits.ts';

/** libs/policy checks whether the type needs a pattern, and whether the pattern is valid. */
export const redactionRuleSchema = z.strictObject({
  type: z
    .string('must be a string')
    .regex(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/, 'must be 1 to 64 letters, digits, _ or -, and begin with a letter'),
  strategy: z.enum(['block', 'redact', 'mask', 'hash'], "must be 'block', 'redact', 'mask' or 'hash'"),
  pattern: z
    .string('must be a string')
    .min(1, 'must not be empty')
    .max(LIMITS.redactionPatternChars, `must be at most ${LIMITS.redactionPatternChars} characters`)
    .optional(),
});
export type RedactionRule = z.infer<typeof redactionRuleSchema>;

export const redactionRulesSchema = z
  .array(redactionRuleSchema, 'must be an array of rules')
  .max(LIMITS.redactionRules, `must hold at most ${LIMITS.redactionRules} rules`);
