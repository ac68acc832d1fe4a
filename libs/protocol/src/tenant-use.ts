import { z } from 'zod';

/** What the sessions of one tenant use on one host. Its worker counts it. */
export const tenantUseSchema = z.object({
  /** Processor time of all sandboxes that the host ever had. */
  processorMs: z.number().default(0),
  /** Bytes of output of all commands that ended on the host, before they were cut to size. */
  outputBytes: z.number().default(0),
  /** Bytes that its present containers have written to the disk of the engine, as measured last. */
  diskBytes: z.number().default(0),
});
export type TenantUse = z.infer<typeof tenantUseSchema>;
