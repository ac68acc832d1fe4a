import { z } from 'zod';
import { APPROVAL_SCOPES } from './approval.ts';
import { callerSchema } from './caller.ts';
import { patternSchema, prefixRuleSchema } from './prefix-rule.ts';

// Stored data of approvals. All of it is redacted, and all but `approvalEndSchema` is sealed.

/** The id of a question: `<keyed hash of what is asked>.<nonce>`. The nonce keeps old answers from matching. */
export const approvalIdSchema = z
  .string('must be a string')
  .regex(/^[0-9a-f]{20}\.[0-9a-f]{12}$/, 'must be the id of a question, as `approvals ls` shows it');

/** How a first attempt ended, as a person sees it. */
export const firstAttemptSchema = z.object({ exitCode: z.number().nullable(), output: z.string() });

/** A question: everything that its sessions have in common, and the command that asked first. */
export const approvalQuestionSchema = z.object({
  sessionId: z
    .string()
    .meta({ description: 'Among the sessions that still ask, the one that asked first. Empty for a tool call.' }),
  commandId: z.string().meta({ description: 'The command or tool call that asked.' }),
  submittedBy: callerSchema.optional().meta({
    description: 'Caller that submitted it, who cannot answer. Absent when its client named none.',
  }),
  tool: z.string().optional().meta({ description: 'Name of the tool, if a tool call asks.' }),
  script: z.string().meta({ description: 'The whole script that will run, redacted. Untrusted text.' }),
  reason: z.string().meta({ description: 'Why a person is asked.' }),
  justification: z.string().optional().meta({ description: "The submitter's reason for the command. Untrusted text." }),
  place: z
    .string()
    .meta({ description: 'The sandbox in which the command will run: policy, mode, network, image, in words.' }),
  outside: z
    .literal(true)
    .optional()
    .meta({ description: 'Present when the command asks to run outside the sandbox of its session.' }),
  cwd: z
    .string()
    .optional()
    .meta({
      description:
        'Working directory, without links. Absent when the question does not depend on it, or when it is ' +
        'not known yet.',
    }),
  cwdUnknown: z.string().optional().meta({
    description: 'Why `cwd` is not known, redacted. An approval of scope `session` then answers this question alone.',
  }),
  env: z.array(z.string()).meta({
    description: 'Names of the variables that the submitter sets, for the command or the session, secrets included.',
  }),
  stdin: z.object({ bytes: z.number(), sha256: z.string() }).optional().meta({
    description: "Size and SHA-256 (hex) of the stdin or of a tool call's arguments. Absent when there are none.",
  }),
  content: z
    .object({ files: z.number(), bytes: z.number(), sha256: z.string() })
    .optional()
    .meta({
      description:
        'Contents that a file operation writes. `sha256` (hex) is the hash of a single file, or of a ' +
        '`sha256sum` list of several files.',
    }),
  covers: z
    .object({ pattern: patternSchema, under: z.string() })
    .optional()
    .meta({
      description:
        'What an approval of scope `session` allows. `under` is a keyed hash of the rules and the session ' +
        'it applies to.',
    }),
  firstAttempt: firstAttemptSchema.optional().meta({
    description:
      'Exit code and end of the output of a first attempt that the sandbox denied something, redacted. ' +
      'Untrusted text.',
  }),
  amendment: prefixRuleSchema
    .optional()
    .meta({ description: 'The rule that the scope `prefix` would add. Absent when that scope is not offered.' }),
});
export type StoredQuestion = z.infer<typeof approvalQuestionSchema>;

const name = () => z.string('must be a string').min(1, 'must not be empty').max(256, 'must be at most 256 characters');
const reason = () => z.string('must be a string').max(1_024, 'must be at most 1024 characters');

/** An answer, as the person's client writes it. */
export const approvalAnswerSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('approve'),
    id: approvalIdSchema,
    scope: z.enum(APPROVAL_SCOPES, `must be one of ${APPROVAL_SCOPES.join(', ')}`),
    /** Digest of the question as the person saw it. The signature covers this digest. */
    asked: z.string().optional(),
    answeredBy: name(),
  }),
  z.object({
    type: z.literal('deny'),
    id: approvalIdSchema,
    reason: reason().optional(),
    /** Whether to cancel the entries that wait behind the held head. */
    abort: z.boolean('must be true or false').optional(),
    answeredBy: name(),
  }),
  z.object({ type: z.literal('revoke'), id: approvalIdSchema, answeredBy: name() }),
]);
export type ApprovalAnswer = z.infer<typeof approvalAnswerSchema>;

export const approvalGrantSchema = z.object({
  question: approvalQuestionSchema,
  scope: z.enum(APPROVAL_SCOPES),
  answeredBy: z.string(),
  askedAt: z.number(),
  count: z.number(),
  /** The sealed answer, which is signed where keys are configured. */
  answer: z.string().optional(),
});
export type ApprovalGrant = z.infer<typeof approvalGrantSchema>;

/** How a question ended. Not sealed. */
export const approvalEndSchema = z.object({
  state: z.enum(['approved', 'denied', 'expired', 'revoked', 'withdrawn']),
  scope: z.enum(APPROVAL_SCOPES).optional(),
  answeredBy: z.string().optional(),
  reason: z.string().optional(),
  abort: z.boolean().optional(),
});
export type ApprovalEnd = z.infer<typeof approvalEndSchema>;
