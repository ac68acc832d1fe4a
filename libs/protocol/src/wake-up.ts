import { z } from 'zod';
import { ENTRY_ID_PATTERN, entryIdSchema, ID_PATTERN, sessionIdSchema, tenantIdSchema } from './ids.ts';
import { LIMITS } from './limits.ts';
import { terminalIdSchema } from './terminal.ts';
import { toolNameSchema } from './tool.ts';

const DECIMAL = /^[0-9]{1,16}$/;
const decimal = z.string().regex(DECIMAL);

/** An entry in a wake-up, as the script of submit has it. */
const carriedEntrySchema = z.object({
  id: entryIdSchema,
  payload: z.string().max(LIMITS.wakeUpPayloadBytes),
  kind: z.enum(['command', 'file', 'restart']),
  inbox: z.string().max(200),
  acceptedAt: decimal,
  retry: z.enum(['never', 'idempotent']),
  /** Empty: it is not started. */
  startedAt: decimal.or(z.literal('')),
  /** of the owner */
  fence: decimal,
});
export type CarriedEntry = z.infer<typeof carriedEntrySchema>;

const sessionFields = { tenant: tenantIdSchema, session: sessionIdSchema };

/**
 * A pub/sub message to hosts: there may be work. It can be lost, so its receiver also polls. It can be unfounded, so its receiver checks
 * for work before it acts.
 */
export const wakeUpSchema = z.discriminatedUnion('type', [
  /** To its host: an idle session has work, or is closing. `entry`: what was submitted, if it is the head, or was started at once. */
  z.object({ type: z.literal('session'), ...sessionFields, entry: carriedEntrySchema.optional() }),
  /** To its host: something was written to the stdin of the running command. */
  z.object({ type: z.literal('input'), ...sessionFields }),
  /** To its host: the user of a terminal has typed or read something, or has sent a heartbeat. */
  z.object({ type: z.literal('terminal'), ...sessionFields, terminal: terminalIdSchema }),
  /** To one host: its stream of calls has entries. */
  z.object({ type: z.literal('calls') }),
  /** To all hosts: a session job was added. Hosts that do not offer its placement class ignore it. */
  z.object({ type: z.literal('sessions'), placementClass: z.string().max(100) }),
  /** To all hosts: there are answers to questions of the tenant. `confirm`: the id of a revocation whose writer waits. */
  z.object({
    type: z.literal('answers'),
    tenant: tenantIdSchema,
    confirm: z
      .string()
      .regex(/^[0-9]{1,20}-[0-9]{1,20}$/)
      .optional(),
  }),
  /** To all hosts: a call of the tool was added. */
  z.object({ type: z.literal('tool'), name: toolNameSchema }),
]);
export type WakeUp = z.infer<typeof wakeUpSchema>;

/** The only format of a wake-up. Scripts receive it as an argument and publish it unchanged. */
export const encodeWakeUp = (wakeUp: z.input<typeof wakeUpSchema>): string => JSON.stringify(wakeUp);

/** Returns undefined when the message is not a wake-up: any client of Redis can publish. */
export function parseWakeUp(message: string): WakeUp | undefined {
  try {
    const value: unknown = JSON.parse(message);
    return isPlainSession(value) ? value : wakeUpSchema.safeParse(value).data;
  } catch {
    return undefined;
  }
}

/**
 * A wake-up of a session, of which the schema would change nothing. It begins nearly every command of an idle session, and the schema takes
 * longer than the rest of that step. False means only that the schema has to decide.
 */
function isPlainSession(value: unknown): value is WakeUp {
  if (!hasOnly(SESSION_FIELDS, value) || value.type !== 'session') return false;
  return isId(value.tenant) && isId(value.session) && (value.entry === undefined || isPlainEntry(value.entry));
}

function isPlainEntry(value: unknown): boolean {
  return (
    hasOnly(ENTRY_FIELDS, value) &&
    matches(ENTRY_ID_PATTERN, value.id) &&
    isShort(value.payload, LIMITS.wakeUpPayloadBytes) &&
    value.kind === 'command' &&
    isShort(value.inbox, 200) &&
    matches(DECIMAL, value.acceptedAt) &&
    (value.retry === 'never' || value.retry === 'idempotent') &&
    (value.startedAt === '' || matches(DECIMAL, value.startedAt)) &&
    matches(DECIMAL, value.fence)
  );
}

const SESSION_FIELDS: ReadonlySet<string> = new Set(['type', 'tenant', 'session', 'entry']);
const ENTRY_FIELDS: ReadonlySet<string> = new Set(Object.keys(carriedEntrySchema.shape));

function hasOnly(names: ReadonlySet<string>, value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  for (const name in value) if (!names.has(name)) return false;
  return true;
}

const isShort = (value: unknown, most: number) => typeof value === 'string' && value.length <= most;
const matches = (pattern: RegExp, value: unknown) => typeof value === 'string' && pattern.test(value);
const isId = (value: unknown) => isShort(value, LIMITS.idChars) && matches(ID_PATTERN, value);
