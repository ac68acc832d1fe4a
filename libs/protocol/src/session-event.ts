import { z } from 'zod';
import { APPROVAL_SCOPES, type ApprovalScope } from './approval.ts';
import type { EventType, OutputChunk } from './events.ts';
import type { Result } from './result.ts';

/** The `data` of an event, by its type. */
export interface SessionEventData {
  /** The session has work, and waits for a slot. */
  'session.queued': Record<string, never>;
  /** The first shell of the session is ready. */
  'session.opened': ShellEventData;
  /** A worker has adopted the living shell: another worker, or a new process of the same worker. */
  'session.adopted': ShellEventData;
  /** A fresh shell is ready, after a restart or a loss. */
  'session.restarted': ShellEventData;
  /** The shell is gone, with everything in it. */
  'session.lost': {
    /** Why the shell was lost, in words. */
    reason: string;
    /** The host that had the shell. */
    hostId?: string | undefined;
  };
  /** The session is closed. No event comes after this one. */
  'session.closed': {
    /** Why the session was closed, in words. Absent when a caller closed it. */
    reason?: string | undefined;
  };
  /** The host does not answer; `onHostLoss` of the spec applies after `hostGraceMs`. */
  'host.unreachable': { hostId: string };
  /** An entry was accepted: a command, a step of a file operation, or a restart. */
  'command.accepted': { kind: 'command' | 'file' | 'restart' };
  /** The command began. `again`: it runs once more. `attempt` is then the number of this start among all starts. */
  'command.started': { hostId: string; again?: true | undefined; attempt?: number | undefined };
  /** A piece of the output of a command. */
  'command.output': OutputChunk;
  /** The command ended. */
  'command.completed': Result;
  /** The command waits for the answer of a person. */
  'approval.requested': ApprovalRequestedData;
  /** A person answered the question, or nobody answered in time. */
  'approval.answered': ApprovalAnsweredData;
}

/** The shell that an event is about. */
export interface ShellEventData {
  /** Id of the shell's host. */
  hostId: string;
  /** Number of shells that the session has had, this one included. */
  epoch: number;
  /** The image of the container. Absent under the policy `host`, which has none. */
  image?: string | undefined;
  /** The digest of that image, `sha256:…`. */
  imageDigest?: string | undefined;
  /** Node of the cluster on which the shell runs. Absent where shells are not in a cluster. */
  node?: string | undefined;
  /** Id of the worker that had the shell before, if another one has adopted it. */
  previousHostId?: string | undefined;
}

/** The question that an entry asks. */
export interface ApprovalRequestedData {
  /** Id of the question, as `fleet.approvals` takes it. Sessions that ask the same question share one id. */
  id: string;
  /** Why a person is asked, redacted. */
  reason: string;
  /** When the question expires; ISO 8601, by the clock of Redis. */
  expiresAt: string;
}

/** How a question ended. */
export interface ApprovalAnsweredData {
  /** Id of the question. */
  id: string;
  /** Answer to the question. `expired`: nobody answered in time. */
  decision: 'approved' | 'denied' | 'expired';
  /** Scope of an approval. */
  scope?: ApprovalScope | undefined;
  /** Key or name of the person who answered. */
  answeredBy?: string | undefined;
  /** Why the person decided so, in the person's words. */
  reason?: string | undefined;
}

/** The fields of every event, besides `type` and `data`. Events of commands and approvals have a `commandId`. */
export interface SessionEventFields {
  /** Position in the session's stream: `events({ after: id })` continues after it. */
  id: string;
  /** Time of the event; ISO 8601, by the clock of Redis. */
  at: string;
}

export type CommandEventType = Extract<EventType, `command.${string}` | `approval.${string}`>;

/** One event of a session. Its `type` determines its `data`. Events of commands and approvals have a command's id. */
export type SessionEvent = {
  [Type in EventType]: SessionEventFields & {
    type: Type;
    data: SessionEventData[Type];
  } & (Type extends CommandEventType ? { commandId: string } : { commandId?: undefined });
}[EventType];

/** Types of events whose data is stored as JSON with a schema below. Output and Results have other schemas. */
export type JsonEventType = Exclude<EventType, 'command.output' | 'command.completed'>;

const shellSchema = z.object({
  hostId: z.string(),
  epoch: z.number(),
  image: z.string().optional(),
  imageDigest: z.string().optional(),
  node: z.string().optional(),
  previousHostId: z.string().optional(),
});

const requestSchema = z.object({ id: z.string(), sealedReason: z.string(), expiresAt: z.string() });
/** Stored data of `approval.requested`. The reason is sealed, because it may quote the script. */
export type StoredRequest = z.infer<typeof requestSchema>;

type StoredData = Omit<SessionEventData, 'approval.requested'> & { 'approval.requested': StoredRequest };

/** The stored data of each event. */
export const eventDataSchemas: { [Type in JsonEventType]: z.ZodType<StoredData[Type]> } = {
  'session.queued': z.object({}),
  'session.opened': shellSchema,
  'session.adopted': shellSchema,
  'session.restarted': shellSchema,
  'session.lost': z.object({ reason: z.string(), hostId: z.string().optional() }),
  'session.closed': z.object({ reason: z.string().optional() }),
  'host.unreachable': z.object({ hostId: z.string() }),
  'command.accepted': z.object({ kind: z.enum(['command', 'file', 'restart']) }),
  'command.started': z.object({
    hostId: z.string(),
    again: z.literal(true).optional(),
    attempt: z.number().optional(),
  }),
  'approval.requested': requestSchema,
  'approval.answered': z.object({
    id: z.string(),
    decision: z.enum(['approved', 'denied', 'expired']),
    scope: z.enum(APPROVAL_SCOPES).optional(),
    answeredBy: z.string().optional(),
    reason: z.string().optional(),
  }),
};
