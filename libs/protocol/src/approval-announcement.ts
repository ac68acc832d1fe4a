import { z } from 'zod';
import type { Approval } from './approval.ts';
import { approvalIdSchema, approvalQuestionSchema } from './approval-data.ts';

// The requests that a fleet sends to its operator's webhook. Receivers of other versions parse them.

/**
 * Version of the announcements. It rises when a field changes its meaning or is removed. A new field does not raise it,
 * because receivers ignore new fields.
 */
export const ANNOUNCEMENT_VERSION = 1;

/** `t=<Unix time in s>,v1=<HMAC-SHA-256 of "<t>.<body>", hex>` */
export const ANNOUNCEMENT_SIGNATURE_HEADER = 'shellfleet-signature';

/** A pending question, as `Fleet.approvals.list` shows it. */
const announcedApprovalSchema = approvalQuestionSchema.extend({
  id: approvalIdSchema,
  state: z.literal('pending'),
  count: z.number(),
  filesWritten: z.array(z.string()).optional(),
  askedAt: z.string(),
  expiresAt: z.string(),
});

/** The body of a request to the webhook. */
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
