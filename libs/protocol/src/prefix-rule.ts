import { z } from 'zod';

/** A decision about every command that begins with the words of a pattern. */
export interface PrefixRule {
  /** The first words of a command. An element that is a list matches any one of its words. */
  pattern: (string | string[])[];
  /** Decision about matching commands. `prompt` asks a person. Of all rules that match, the strictest wins. */
  decision: 'allow' | 'prompt' | 'forbid';
  /** Text that is shown with the decision. Not blank. */
  justification?: string | undefined;
  /** Examples that the rule must match. They are checked when the rule is loaded. */
  match?: string[] | undefined;
  /** Examples that the rule must not match. They are checked when the rule is loaded. */
  notMatch?: string[] | undefined;
}

const wordSchema = z
  .string('must be a string')
  .min(1, 'must not be empty')
  .max(1_024, 'must be at most 1024 characters');
const examplesSchema = z
  .array(z.string('must be a string').min(1, 'must not be empty').max(4_096, 'must be at most 4096 characters'))
  .max(64, 'must hold at most 64 examples');

export const patternSchema = z
  .array(
    z.union([
      wordSchema,
      z.array(wordSchema).min(1, 'must hold an alternative').max(64, 'must hold at most 64 alternatives'),
    ]),
    'must be a list of words',
  )
  .min(1, 'must hold a word')
  .max(64, 'must hold at most 64 words');

export const prefixRuleSchema: z.ZodType<PrefixRule, PrefixRule> = z
  .strictObject(
    {
      pattern: patternSchema.meta({
        description: 'The first words of a command. An element that is a list matches any one of its words.',
      }),
      decision: z.enum(['allow', 'prompt', 'forbid'], "must be 'allow', 'prompt' or 'forbid'").meta({
        description:
          'Decision about matching commands. `prompt` asks a person. Of all rules that match, the strictest wins.',
      }),
      justification: z
        .string('must be a string')
        .max(1_024, 'must be at most 1024 characters')
        .refine((text) => text.trim() !== '', 'must say why: leave it out, or give a text that is not blank')
        .optional()
        .meta({ description: 'Text that is shown with the decision. Not blank.' }),
      match: examplesSchema
        .optional()
        .meta({ description: 'Examples that the rule must match. They are checked when the rule is loaded.' }),
      notMatch: examplesSchema
        .optional()
        .meta({ description: 'Examples that the rule must not match. They are checked when the rule is loaded.' }),
    },
    'must be a rule: { pattern, decision, justification?, match?, notMatch? }',
  )
  .meta({ id: 'PrefixRule', description: 'A decision about every command that begins with the words of a pattern.' });

export const sessionRulesSchema = z
  .array(prefixRuleSchema, 'must be a list of rules')
  .max(256, 'must hold at most 256 rules');
