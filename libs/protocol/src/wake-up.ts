import { z } from 'zod';
import { entryIdSchema, sessionIdSchema, tenantIdSchema } from './ids.ts';
import { LIMITS } from './limits.ts';
import { terminalIdSchema } from './terminal.ts';
import { toolNameSchema } from './tool.ts';

const decimal = z.string().regex(/^[0-9]{1,16}$/);

/** The entry that a wake-up carries, with the fields that the submit script has. */
const carriedEntrySchema = z.object({
  id: entryIdSchema,
  payload: z.string().max(LIMITS.wakeUpPayloadBytes),
  kind: z.enum(['command', 'file', 'restart']),
  inbox: z.string().max(200),
  acceptedAt: decimal,
  retry: z.enum(['never', 'idempotent']),
  /** Time at which the entry was started (ms), or empty if it was not started. */
  startedAt: decimal.or(z.literal('')),
  fence: decimal,
});
export type CarriedEntry = z.infer<typeof carriedEntrySchema>;

const sessionFields = { tenant: tenantIdSchema, session: sessionIdSchema };

/**
 * A pub/sub message to hosts: there may be work. Hosts also poll, and after each wake-up they check whether there is
 * work.
 */
const wakeUpSchema = z.discriminatedUnion('type', [
  /**
   * To the session's host: the idle session has work, or is closing. `entry` is the new head of the mailbox, or an
   * entry that the submit has started at once.
   */
  z.object({ type: z.literal('session'), ...sessionFields, entry: carriedEntrySchema.optional() }),
  /** To the session's host: data for the stdin of the running command. */
  z.object({ type: z.literal('input'), ...sessionFields }),
  /** To the session's host: the user of a terminal has typed or read something, or has sent a heartbeat. */
  z.object({ type: z.literal('terminal'), ...sessionFields, terminal: terminalIdSchema }),
  /** To one host: there are items in its stream of calls. */
  z.object({ type: z.literal('calls') }),
  /** To all hosts: a session job was added. Hosts that do not offer its placement class ignore it. */
  z.object({ type: z.literal('sessions'), placementClass: z.string().max(LIMITS.placementClassChars) }),
  /**
   * To all hosts: questions of the tenant have answers. `confirm` is the id of a revocation whose writer waits for the
   * hosts to confirm it.
   */
  z.object({
    type: z.literal('answers'),
    tenant: tenantIdSchema,
    confirm: z
      .string()
      .regex(/^[0-9]{1,20}-[0-9]{1,20}$/)
      .optional(),
  }),
  /** To all hosts: the configuration of the fleet has changed. */
  z.object({ type: z.literal('configuration') }),
  /** To all hosts: a detached batch waits for a worker. */
  z.object({ type: z.literal('batches') }),
  /** To all hosts: a call of the tool was added. */
  z.object({ type: z.literal('tool'), name: toolNameSchema }),
]);
export type WakeUp = z.infer<typeof wakeUpSchema>;

/** Encodes a wake-up. Scripts receive it as an argument and publish it unchanged. */
export const encodeWakeUp = (wakeUp: z.input<typeof wakeUpSchema>): string => JSON.stringify(wakeUp);

/** Parses a wake-up. Returns undefined for other messages, because any client of Redis can publish them. */
export function parseWakeUp(message: string): WakeUp | undefined {
  try {
    return wakeUpSchema.safeParse(JSON.parse(message)).data;
  } catch {
    return undefined;
  }
}
