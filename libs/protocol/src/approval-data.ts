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
  sessionId: z.string(),
  commandId: z.string(),
  submittedBy: callerSchema.optional(),
  tool: z.string().optional(),
  script: z.string(),
  reason: z.string(),
  justification: z.string().optional(),
  place: z.string(),
  outside: z.literal(true).optional(),
  cwd: z.string().optional(),
  cwdUnknown: z.string().optional(),
  env: z.array(z.string()),
  stdin: z.object({ bytes: z.number(), sha256: z.string() }).optional(),
  content: z.object({ files: z.number(), bytes: z.number(), sha256: z.string() }).optional(),
  covers: z.object({ pattern: patternSchema, under: z.string() }).optional(),
  firstAttempt: firstAttemptSchema.optional(),
  amendment: prefixRuleSchema.optional(),
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
