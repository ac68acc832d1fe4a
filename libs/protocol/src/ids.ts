import { z } from 'zod';
import { LIMITS } from './limits.ts';

/** Ids hold only characters without a special meaning in Redis keys, hash tags, globs, paths and shells. */
const ID_PATTERN = /^[A-Za-z0-9._-]+$/;

const idSchema = z
  .string('must be a string')
  .min(1, { error: 'must not be empty', abort: true })
  .max(LIMITS.idChars, { error: `must be at most ${LIMITS.idChars} characters`, abort: true })
  .regex(ID_PATTERN, 'may only hold A-Z a-z 0-9 . _ -');

export const sessionIdSchema = idSchema.brand<'SessionId'>();
export const tenantIdSchema = idSchema.brand<'TenantId'>();
export const hostIdSchema = idSchema.brand<'HostId'>();
export const namespaceSchema = idSchema.brand<'Namespace'>();

export type SessionId = z.infer<typeof sessionIdSchema>;
export type TenantId = z.infer<typeof tenantIdSchema>;
export type HostId = z.infer<typeof hostIdSchema>;
export type Namespace = z.infer<typeof namespaceSchema>;

const ENTRY_ID_PATTERN = /^[0-9A-HJKMNP-TV-Z]{26}$/;

/** The id of a mailbox entry: a ULID from the client, unique within its session. */
export const entryIdSchema = z.string().regex(ENTRY_ID_PATTERN, 'must be a ULID').brand<'EntryId'>();
export type EntryId = z.infer<typeof entryIdSchema>;

/** `<sessionId>.<ULID>` */
export type CommandId = string & { readonly __brand: 'CommandId' };

export function toCommandId(sessionId: string, entryId: string): CommandId {
  return `${sessionId}.${entryId}` as CommandId;
}

/** Splits a command id into its session and entry. Returns undefined for other text. */
export function parseCommandId(commandId: string): { sessionId: SessionId; entryId: EntryId } | undefined {
  const dot = commandId.lastIndexOf('.');
  const sessionId = sessionIdSchema.safeParse(commandId.slice(0, Math.max(dot, 0)));
  const entryId = entryIdSchema.safeParse(commandId.slice(dot + 1));
  if (!sessionId.success || !entryId.success) return undefined;
  return { sessionId: sessionId.data, entryId: entryId.data };
}
