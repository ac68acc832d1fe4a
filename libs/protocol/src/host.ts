import { z } from 'zod';
import { wireErrorSchema } from './errors.ts';
import { STREAM_NAMES } from './events.ts';
import { fileReplySchema } from './file.ts';
import {
  type HostGate,
  type HostPool,
  hostGateSchema,
  hostImageSchema,
  hostPoolSchema,
  type RunningPull,
  runningPullSchema,
} from './host-parts.ts';
import { entryIdSchema, sessionIdSchema, tenantIdSchema } from './ids.ts';
import { imageNameSchema } from './image-name.ts';
import { LIMITS } from './limits.ts';
import { type LogPage, logReplySchema } from './log.ts';
import { SHELL_WAYS } from './session-info.ts';
import { terminalIdSchema, terminalSizeSchema } from './terminal.ts';
import { carriedTraceSchema } from './trace-context.ts';
import { workerLogPageSchema, workerLogRequestSchema } from './worker-log.ts';

/**
 * A host without a heartbeat for this time is unreachable. Its sessions get an event within 5 s: this time, and the
 * time until another host finds it.
 */
export const ALIVE_MS = 4_000;

const bytesOrCount = z.number().default(Number.MAX_SAFE_INTEGER);

/**
 * What a host offers, so that it may refuse sessions that ask for more: what its operator allows, by default the least,
 * and what the host can do. `images` is 'any' or a list. `users` are the names allowed besides plain uids. With
 * `ownUids` each session has a separate uid, which no spec chooses. `controlGroups` bound sessions without a container;
 * `diskQuota` bounds disks.
 */
export const hostOfferSchema = z.object({
  modes: z.array(z.string()).default(['read-only', 'workspace-write']),
  networks: z.array(z.string()).default(['restricted']),
  hosts: z.array(z.string()).default([]),
  runtimes: z.array(z.string()).default([]),
  users: z.array(z.string()).default([]),
  ownUids: z.boolean().default(false),
  images: z.union([z.literal('any'), z.array(z.string())]).default('any'),
  workspaces: z.array(z.string()).default([]),
  redactFormats: z.boolean().default(false),
  /** How many containers the host keeps for a post-mortem. */
  kept: z.number().default(0),
  memoryBytes: bytesOrCount,
  cpus: bytesOrCount,
  pids: bytesOrCount,
  controlGroups: z.boolean().default(true),
  diskQuota: z.boolean().default(true),
  /** What the operator of a worker of Pods allows. Absent on other hosts. */
  cluster: z
    .object({
      runtimeClasses: z.array(z.string()),
      resources: z.array(z.string()),
      podPidsLimit: z.number().optional(),
      unenforced: z.array(z.string()),
      /** Whether the fleet has an egress proxy. */
      egress: z.boolean(),
    })
    .optional(),
});
export type HostOffer = z.infer<typeof hostOfferSchema>;

/** Heartbeat of a host. Its worker writes it every few seconds, to a key that expires when the worker stops. */
export const hostBeatSchema = z.object({
  slots: z.number(),
  free: z.number(),
  /** Sessions of all tenants that hold a slot. */
  sessions: z.number().default(0),
  /** How many of these sessions run a command. */
  running: z.number().default(0),
  /** Sessions with a shell whose next command waits for an approval. */
  held: z.number().default(0),
  /** Commands that ended per second, over the last 10 s. */
  commandsPerSecond: z.number().default(0),
  policies: z.array(z.string()),
  /** Labels that sessions may ask for. */
  labels: z.record(z.string(), z.string()).default({}),
  version: z.string(),
  boot: z.string(),
  /** Ids of the host's seal keys. */
  sealKeys: z.array(z.string()).default([]),
  /** Newest schema version of specs and entries that the host understands. It understands all older ones. */
  schema: z.number().int().min(0).max(1_000).default(0),
  allow: hostOfferSchema.prefault({}),
  draining: z.boolean(),
  /** Why the host takes no new session at present, one sentence each. */
  problems: z.array(z.string()).default([]),
  /** What decides whether the host takes a further session. */
  gate: hostGateSchema.optional(),
  /** Sentences that tell the operator what to repair. In spite of them the host takes sessions. */
  warnings: z.array(z.string()).default([]),
  /** Marks of the names of the images that the host has, at most 500: sessions that name one prefer this host. */
  images: z.array(z.string()).default([]),
  /** Running pulls of images. */
  pulls: z.array(runningPullSchema).default([]),
  pools: z.array(hostPoolSchema).default([]),
  defaultImage: z.string(),
  /** Median time for which recent sessions held a slot. Absent until the first of them has ended. */
  heldMs: z.number().optional(),
  /** `SHELLFLEET_RETENTION`, which all live hosts of a fleet share. */
  retentionMs: z.number().default(LIMITS.defaultRetentionMs),
  /** Revision of the fleet's configuration that the host uses; 0 for the defaults. */
  configuration: z.number().default(0),
});
export type HostBeat = z.infer<typeof hostBeatSchema>;

/** A host of the fleet, as its last heartbeat describes it. */
export interface HostInfo {
  /** Name of the host, `SHELLFLEET_HOST_ID`. */
  id: string;
  /** State of the host. `draining`: it takes no new session. `unreachable`: its last heartbeat is too old. */
  state: 'up' | 'draining' | 'unreachable';
  /** True while an operator has cordoned the host: it keeps its sessions and takes no other. Absent otherwise. */
  cordoned?: true;
  /** Sessions with a shell that the host can have at once, `SHELLFLEET_SLOTS`, while it has room for them. */
  slots: number;
  /** Number of free slots. */
  free: number;
  /** Sessions of all tenants that hold a slot. */
  sessions: number;
  /** How many of these sessions run a command. */
  running: number;
  /** How many sessions with a shell have a command that waits for an approval. Absent when none does. */
  held?: number;
  /** Commands that ended on the host per second, over the last 10 s. */
  commandsPerSecond: number;
  /** Execution policies that the operator allows, `SHELLFLEET_POLICIES`. */
  policies: string[];
  /** Labels that sessions may ask for, `labels` of its configuration file. Absent when it has none. */
  labels?: Record<string, string>;
  /** Version of the worker. */
  version: string;
  /** Revision of the fleet's configuration that the host uses; 0 for the defaults. */
  configuration: number;
  /** Time of the last heartbeat; ISO 8601. */
  seenAt: string;
  /** Why the host takes no new session at present, one sentence each. Absent when it takes them. */
  problems?: string[];
  /** What decides whether the host takes a further session. Absent when it is unreachable. */
  gate?: HostGate;
  /** Sentences that tell the operator what to repair. In spite of them the host takes sessions. */
  warnings?: string[];
  /** Images that the host pulls at present. Absent when it pulls none. */
  pulls?: RunningPull[];
  /** Pools of the host. Absent when it has none. */
  pools?: HostPool[];
}

/** Opens a terminal on the session's host. The terminal's user then writes to it through Redis. */
const attachRequestSchema = z.object({
  type: z.literal('attach'),
  generation: z.string(),
  terminal: terminalIdSchema,
  ...terminalSizeSchema.shape,
  /** TERM */
  term: z.string().regex(/^[A-Za-z0-9._+-]{1,64}$/),
  /** The request as its producer signed it. */
  signed: z.string().optional(),
});
export type AttachRequest = z.infer<typeof attachRequestSchema>;

/**
 * A file operation outside the entries of the mailbox. `operation`: its id, the same in every request about it; it is
 * done at most once. `sealed`: the FileOperation.
 */
const fileRequestSchema = z.object({
  type: z.literal('file'),
  generation: z.string(),
  operation: z.ulid(),
  sealed: z.string(),
  /** Whether a person may be asked about the operation when the host receives this request. */
  asks: z.boolean().optional(),
  trace: carriedTraceSchema,
});
export type FileRequest = z.infer<typeof fileRequestSchema>;

/** A question that waits for a person. `reason` is redacted. */
const askedQuestionSchema = z.object({ id: z.string(), reason: z.string(), expiresAt: z.string() });

/** The requests that a host replies to, each with the schema of its reply. */
export const hostReplySchemas = {
  /** Processes in the sandbox other than the shell, and how commands get into that. */
  background: z.object({
    processes: z.array(z.object({ pid: z.number(), command: z.string() })),
    way: z.enum(SHELL_WAYS).exactOptional(),
  }),
  /**
   * Whether the terminal is open. `no-shell`: the session has no shell, so the caller submits an entry that starts one.
   */
  attach: z.object({ state: z.enum(['open', 'no-shell']) }),
  /** Output of a command beyond the budget of its session's stream, from given offsets on. */
  log: logReplySchema,
  /**
   * State of the file operation. `no-shell`: it was not begun, because the session has no shell. `unknown`: it may have
   * been done. `would-ask`: it was not begun, because a person has to be asked. `asks`: a person has been asked; the
   * caller requests the operation again when the question of `asker` has ended.
   */
  file: z.discriminatedUnion('state', [
    z.object({ state: z.literal('done'), epoch: z.number(), reply: fileReplySchema }),
    z.object({ state: z.enum(['no-shell', 'unknown', 'would-ask']) }),
    z.object({ state: z.literal('asks'), asker: entryIdSchema, question: askedQuestionSchema }),
  ]),
  /** Images of the host that sessions may name. */
  images: z.array(hostImageSchema),
  /** State of the pull. While it runs, the caller repeats the request. */
  'pull-image': z.discriminatedUnion('state', [
    z.object({ state: z.literal('present'), digest: z.string() }),
    z.object({ state: z.literal('pulling'), pull: runningPullSchema.optional() }),
  ]),
  /** Images that were removed, or that would be. */
  'prune-images': z.array(hostImageSchema),
  /** The last lines of the log of the host's worker. */
  'worker-log': workerLogPageSchema,
} as const;

const offsetSchema = z.number().int().min(0);

/** Requests of operators about the images of the host. Their call has an empty session. */
const imageRequestSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('images') }),
  z.object({ type: z.literal('pull-image'), image: imageNameSchema }),
  z.object({ type: z.literal('prune-images'), dryRun: z.boolean() }),
]);

/** Requests about a session. */
const sessionRequestSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('background') }),
  z.object({
    type: z.literal('log'),
    entry: entryIdSchema,
    streams: z.array(z.enum(STREAM_NAMES)).min(1).max(2),
    from: z.object({ stdout: offsetSchema, stderr: offsetSchema }),
    /**
     * Present when the reader that is attached to the command asks. It has everything before `from`. `reads`: the host
     * waits a moment for output before it replies. `waits`: the request is only a heartbeat, because the reader cannot
     * take more now; the reply is empty.
     */
    attached: z.enum(['reads', 'waits']).optional(),
  }),
  attachRequestSchema,
  fileRequestSchema,
]);
export type SessionRequest = z.infer<typeof sessionRequestSchema>;
export type ImageRequest = z.infer<typeof imageRequestSchema>;
/** Requests of operators. */
const operatorRequestSchema = z.discriminatedUnion('type', [...imageRequestSchema.options, workerLogRequestSchema]);
export type OperatorRequest = z.infer<typeof operatorRequestSchema>;
export type HostRequest = SessionRequest | OperatorRequest;
export type LogRequest = Extract<HostRequest, { type: 'log' }>;
export type HostReply<T extends HostRequest['type']> = T extends 'log'
  ? LogPage
  : z.infer<(typeof hostReplySchemas)[T]>;

/** A reply in the inbox of the producer that sent the request. It is stored sealed; a line feed and data may follow. */
export const sealedReplySchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('reply'), value: z.unknown() }),
  z.object({ type: z.literal('refusal'), error: wireErrorSchema }),
]);
export type SealedReply = z.infer<typeof sealedReplySchema>;

const sessionCall = { tenant: tenantIdSchema, session: sessionIdSchema, generation: z.string() };

/**
 * A message in a tenant's stream of calls to a host. It does not wait behind the entries of a mailbox. A call may
 * arrive late or twice, so a host ignores a call for another generation of the session than the one that it serves.
 * `signed`: the request as its producer signed it.
 */
export const hostCallSchema = z.discriminatedUnion('type', [
  z.object({ ...sessionCall, type: z.literal('cancel'), entry: z.string(), signed: z.string().optional() }),
  z.object({ ...sessionCall, type: z.literal('close'), signed: z.string().optional() }),
  /**
   * Removes the containers of a session that are kept for a post-mortem. `generation` and `signed` mean the same as in
   * `close`.
   */
  z.object({ ...sessionCall, type: z.literal('purge'), signed: z.string().optional() }),
  z.object({ type: z.literal('cancel-tool'), tenant: tenantIdSchema, call: z.string(), signed: z.string().optional() }),
  /** `id` identifies the request in the reply; `inbox` is the id of the requesting producer. */
  z.object({
    type: z.literal('request'),
    tenant: tenantIdSchema,
    session: sessionIdSchema,
    id: z.string(),
    inbox: z.string(),
    request: sessionRequestSchema,
  }),
]);

/** A message in the host's stream of calls of operators. */
export const operatorCallSchema = z.discriminatedUnion('type', [
  /** `hostKeys().drain` has changed. */
  z.object({ type: z.literal('drain') }),
  /** `hostKeys().cordon` has changed. */
  z.object({ type: z.literal('cordon') }),
  /** A request about the host itself. The other fields are those of a tenant's `request`. */
  z.object({
    type: z.literal('request'),
    tenant: tenantIdSchema,
    session: z.literal(''),
    id: z.string(),
    inbox: z.string(),
    request: operatorRequestSchema,
  }),
]);
export type OperatorCall = z.infer<typeof operatorCallSchema>;
export type HostCall = z.infer<typeof hostCallSchema>;
/** A call as a client makes it. */
export type NewHostCall = z.input<typeof hostCallSchema> | z.input<typeof operatorCallSchema>;
export type RequestCall = Extract<HostCall, { type: 'request' }>;
export type OperatorRequestCall = Extract<OperatorCall, { type: 'request' }>;
