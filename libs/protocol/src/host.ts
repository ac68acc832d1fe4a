import { z } from 'zod';

/** What a live worker says of its host, every few seconds, in a key that ends with it. */
export const hostBeatSchema = z.object({
  slots: z.number(),
  free: z.number(),
  policies: z.array(z.string()),
  version: z.string(),
  protocol: z.number(),
  boot: z.string(),
  draining: z.boolean(),
  defaultImage: z.string(),
});
export type HostBeat = z.infer<typeof hostBeatSchema>;

export interface HostInfo {
  id: string;
  state: 'up' | 'draining' | 'unreachable';
  slots: number;
  free: number;
  policies: string[];
  version: string;
  seenAt: string;
}

/** What must reach a live shell out of order travels in the host's `calls` stream. */
export const hostCallSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('cancel'), tenant: z.string(), session: z.string(), entry: z.string() }),
  z.object({ type: z.literal('close'), tenant: z.string(), session: z.string() }),
]);
export type HostCall = z.infer<typeof hostCallSchema>;
