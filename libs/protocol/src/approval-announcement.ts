import { z } from 'zod';
import type { Approval } from './approval.ts';
import { approvalIdSchema, approvalQuestionSchema } from './approval-data.ts';

// What a fleet sends to the webhook of its operator. It leaves the fleet: receivers of other versions parse it.

/**
 * Rises when a field changes its meaning or goes. New fields may come without a new version: a receiver ignores what it
 * does not know.
 */
export const ANNOUNCEMENT_VERSION = 1;

/** `t=<Unix time in s>,v1=<HMAC-SHA-256 of "<t>.<body>", hex>` */
export const ANNOUNCEMENT_SIGNATURE_HEADER = 'shellfleet-signature';

/** A question that waits, as `Fleet.approvals.list` shows it. */
const announcedApprovalSchema = approvalQuestionSchema.extend({
  id: approvalIdSchema,
  state: z.literal('pending'),
  count: z.number(),
  filesWritten: z.array(z.string()).optional(),
  askedAt: z.string(),
  expiresAt: z.string(),
});

/** The body of a request to the webhook: a question was asked. */
export const approvalAnnouncementSchema = z.object({
  version: z.literal(ANNOUNCEMENT_VERSION),
  type: z.literal('approval.requested'),
  namespace: z.string(),
  tenant: z.string(),
  approval: announcedApprovalSchema,
});
export type ApprovalAnnouncement = z.infer<typeof approvalAnnouncementSchema>;

export function toAnnouncement(namespace: string, tenant: string, approval: Approval): ApprovalAnnouncement {
  const announcement = { version: ANNOUNCEMENT_VERSION, type: 'approval.requested', namespace, tenant, approval };
  return approvalAnnouncementSchema.parse(announcement);
}
