import { LIMITS } from '@shellfleet/protocol';
import { z } from 'zod';
import { webhookSchema } from './webhook-section.ts';

/** `approvals:`, the questions that sessions of this host ask. */
export const approvalsSchema = z.strictObject(
  {
    pendingPerTenant: z
      .int('must be a whole number')
      .min(1, 'must be at least 1')
      .max(1_000_000, 'must be at most 1000000')
      .default(LIMITS.pendingApprovals)
      .describe('The most questions of one tenant that wait for an answer; further ones end with QUOTA_EXCEEDED'),
    webhook: webhookSchema.optional().describe('Where each question is announced; without it nowhere'),
  },
  'must have only these fields: pendingPerTenant, webhook',
);
