import { z } from 'zod';

/** Header before the plain text of a signed value. No field names the algorithm, which is always Ed25519. */
export const signatureHeaderSchema = z.strictObject({
  /** Id of the public key. */
  key: z.string(),
  /** ms since 1970 */
  expiresAt: z.number().int(),
  /** base64url */
  signature: z.string(),
});
/** Plain text that the submitter signs when it ends an open stdin. */
export const inputEndSchema = z.strictObject({
  closes: z.enum(['end', 'broken']),
  /** Length of the whole stdin. */
  bytes: z.number().int().min(0),
});

export type SignatureHeader = z.infer<typeof signatureHeaderSchema>;
