import { z } from 'zod';
import { APPROVAL_SCOPES } from './approval.ts';
import { approvalQuestionSchema } from './approval-data.ts';

/** A question as callers get it: what is stored of it, and how it ended. */
export const approvalSchema = z
  .object({
    ...approvalQuestionSchema.shape,
    id: z.string().meta({ description: 'Id of the question, for `approve`, `deny` and `revoke`.' }),
    state: z
      .enum(['pending', 'approved', 'denied', 'expired', 'revoked', 'withdrawn'])
      .meta({ description: 'Whether the question is pending, or how it ended.' }),
    filesWritten: z
      .array(z.string())
      .optional()
      .meta({
        description:
          'The newest 100 files that were changed outside the commands since the question was asked, ' +
          'redacted, if any.',
      }),
    count: z.number().meta({ description: 'Number of sessions that ask the same question.' }),
    scope: z
      .enum(APPROVAL_SCOPES)
      .optional()
      .meta({ description: 'Scope of the approval. Absent unless the question was approved.' }),
    answer: z.string().optional().meta({ description: "Why the question was denied, in the person's words." }),
    askedAt: z.string().meta({ description: 'ISO 8601, by the clock of Redis.' }),
    expiresAt: z.string().meta({ description: 'ISO 8601, by the clock of Redis.' }),
    answeredBy: z.string().optional().meta({ description: 'Key or name of the person who answered.' }),
  })
  .meta({ id: 'Approval', description: 'A question for a person, with its answer if there is one.' });
