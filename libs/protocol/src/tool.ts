import { z } from 'zod';
import { callerSchema } from './caller.ts';
import { entryIdSchema, tenantIdSchema } from './ids.ts';
import { LIMITS } from './limits.ts';
import { carriedTraceSchema } from './trace-context.ts';

/** Names that are valid for models, for queues and in URLs. */
export const toolNameSchema = z
  .string('must be a string')
  .regex(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, 'must be 1 to 64 of A-Z a-z 0-9 _ -, the first a letter or _');

/** One tool as a host offers it. Schemas are JSON Schemas. */
export interface ToolOffer {
  /** 1 to 64 of `A-Z a-z 0-9 _ -`. */
  name: string;
  /** Description for a person or a model. */
  description?: string | undefined;
  /** JSON schema of the arguments. */
  inputSchema: Record<string, unknown>;
  /** JSON schema of the output. */
  outputSchema?: Record<string, unknown> | undefined;
  /** Limit in ms of a call whose caller sets none. */
  timeoutMs: number;
}

export const toolOfferSchema = z
  .object({
    name: toolNameSchema.meta({ description: '1 to 64 of `A-Z a-z 0-9 _ -`.' }),
    description: z.string().optional().meta({ description: 'Description for a person or a model.' }),
    inputSchema: z.record(z.string(), z.unknown()).meta({ description: 'JSON schema of the arguments.' }),
    outputSchema: z.record(z.string(), z.unknown()).optional().meta({ description: 'JSON schema of the output.' }),
    timeoutMs: z.number().meta({ description: 'Limit in ms of a call whose caller sets none.' }),
  })
  .meta({ id: 'ToolOffer', description: 'One tool as a host offers it. Schemas are JSON Schemas.' });

/** A tool that live hosts offer. */
export interface ToolInfo extends ToolOffer {
  /** Live hosts that offer the tool. */
  hosts: string[];
  /** The hosts among `hosts` whose definition of the tool differs from this one. */
  differing: string[];
}

export const toolInfoSchema = toolOfferSchema
  .extend({
    hosts: z.array(z.string()).meta({ description: 'Live hosts that offer the tool.' }),
    differing: z.array(z.string()).meta({
      description: 'The hosts among `hosts` whose definition of the tool differs from this one.',
    }),
  })
  .meta({ id: 'ToolInfo', description: 'A tool that live hosts offer.' });

export type ToolEvent =
  | { type: 'tool.added' | 'tool.changed'; tool: ToolInfo }
  | { type: 'tool.removed'; name: string }
  | ToolCallEvent;

export const toolCallEventSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('call.started'),
    at: z.string(),
    callId: z.string(),
    name: z.string(),
    hostId: z.string(),
  }),
  z.object({
    type: z.literal('call.ended'),
    at: z.string(),
    callId: z.string(),
    name: z.string(),
    hostId: z.string().nullable(),
    ok: z.boolean(),
    code: z.string().optional(),
  }),
]);
export type ToolCallEvent = z.infer<typeof toolCallEventSchema>;

/** The error codes of a failed call. docs/tools.md is checked against it. */
export const TOOL_ERROR_CODES = [
  'unknown-tool',
  'arguments-invalid',
  'not-json',
  'too-large',
  'raised',
  'timeout',
  'memory',
  'died',
  'output-invalid',
  'cancelled',
  'not-started',
  'denied',
  'approval-expired',
  'lost',
  'error',
] as const;
export type ToolErrorCode = (typeof TOOL_ERROR_CODES)[number];

/** Why a call failed. */
export interface ToolError {
  /** A code of docs/tools.md. */
  code: ToolErrorCode;
  /** A sentence for a person. */
  message: string;
  /** Details for a program. Their form depends on the code. */
  context?: Record<string, unknown> | undefined;
}

export const toolErrorSchema = z
  .object({
    code: z.enum(TOOL_ERROR_CODES).meta({ description: 'A code of docs/tools.md.' }),
    message: z.string().meta({ description: 'A sentence for a person.' }),
    context: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ description: 'Details for a program. Their form depends on the code.' }),
  })
  .meta({ id: 'ToolError', description: 'Why a call failed.' });

/**
 * The result of a call. The failure of a call is data, like the failure of a command. `callId` is the id that the
 * caller gave, or a new one.
 */
export type ToolResult = { callId: string; hostId: string | null } & (
  | { ok: true; output: unknown }
  | { ok: false; error: ToolError }
);

/** The result of a call, as a caller gets it. */
export const toolResultSchema = z
  .discriminatedUnion('ok', [
    z.object({ ok: z.literal(true), callId: z.string(), hostId: z.string().nullable(), output: z.unknown() }),
    z.object({ ok: z.literal(false), callId: z.string(), hostId: z.string().nullable(), error: toolErrorSchema }),
  ])
  .meta({
    id: 'ToolResult',
    description:
      'The result of a call. The failure of a call is data, like the failure of a command. `callId` is the id that ' +
      'the caller gave, or a new one.',
  });

/** A result before it is sealed and stored in Redis. */
export const wireToolResultSchema = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), hostId: z.string(), output: z.unknown() }),
  z.object({ ok: z.literal(false), hostId: z.string().nullable(), error: toolErrorSchema }),
]);

/** Name that the caller gives to a call. The result contains it unchanged. No lookup uses it. */
export const toolCallIdSchema = z
  .string('must be a string')
  .min(1, 'must not be empty')
  .max(256, 'must be at most 256 characters');

/**
 * Session id in the questions of tool calls, which belong to no session. No session can have this id. The name of the
 * tool is used as the generation.
 */
export const TOOL_ASKER = '@tool';

/** The data of a call's job. The queue of the job determines the tool. */
export const toolJobSchema = z.strictObject({
  call: entryIdSchema,
  /** The caller's own name of the call. */
  callId: toolCallIdSchema.optional(),
  tenant: tenantIdSchema,
  /** Id of the producer that waits for the result. */
  inbox: entryIdSchema,
  /** sealed */
  args: z.string(),
  timeoutMs: z.number().int().positive().max(LIMITS.timeoutMs).optional(),
  /** Time by the clock of Redis (ms) after which the call is not started any more. */
  deadline: z.number().int().positive().optional(),
  /** How long a question about the call may wait for a person. */
  approvalTimeoutMs: z.number().int().positive().max(LIMITS.timeoutMs).optional(),
  /** Span of the caller. */
  trace: carriedTraceSchema,
});
export type ToolJob = z.infer<typeof toolJobSchema>;

/** What `args` of a job seals: the arguments as JSON, and the caller. */
export const sealedToolArgsSchema = z.object({ args: z.string(), submittedBy: callerSchema.optional() });
