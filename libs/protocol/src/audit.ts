import { z } from 'zod';
import { callerSchema } from './caller.ts';

// A host's audit records about entries. Every text in them is redacted.

const entry = { session: z.string(), generation: z.string(), entry: z.string() };
const count = z.number().int().nonnegative();
const terminal = { session: z.string(), generation: z.string(), terminal: z.string() };

export const auditEventSchema = z.discriminatedUnion('type', [
  /**
   * The host saw the entry for the first time. `submittedBy` is the caller that its client named. `producer` signed the
   * entry, where keys are configured.
   */
  z.object({
    type: z.literal('submission'),
    ...entry,
    kind: z.string(),
    acceptedAt: z.string(),
    policy: z.string(),
    image: z.string().optional(),
    script: z.string().optional(),
    /** Number of characters of the script that `script` lacks. */
    scriptOmitted: count.optional(),
    operation: z.string().optional(),
    path: z.string().optional(),
    submittedBy: callerSchema.optional(),
    producer: z.string().optional(),
  }),
  z.object({
    type: z.literal('decision'),
    ...entry,
    decision: z.enum(['admit', 'hold', 'deny']),
    reason: z.string().optional(),
    by: z.string().optional(),
    /** Id of the question of a `hold`. The record of the `answer` has the same id. */
    question: z.string().optional(),
    outside: z.literal(true).optional(),
    /** Names of the rules that decided. */
    digest: z.string(),
  }),
  /** Decision of the rules with `reportOnly`. `rules` has the patterns of the rules that matched. */
  z.object({
    type: z.literal('reported'),
    ...entry,
    decision: z.enum(['skip', 'needs-approval', 'forbidden']),
    rules: z.array(z.string()),
  }),
  z.object({
    type: z.literal('answer'),
    question: z.string(),
    decision: z.enum(['approve', 'deny', 'revoke']),
    scope: z.string().optional(),
    answeredBy: z.string(),
    /** Owner of the key that signed the answer, where keys are configured. */
    approver: z.string().optional(),
    reason: z.string().optional(),
  }),
  /** Number and place of an attempt: 2 follows a denial by the sandbox, and `outside` is the wider sandbox. */
  z.object({
    type: z.literal('start'),
    ...entry,
    fence: count,
    epoch: count,
    attempt: count.optional(),
    outside: z.literal(true).optional(),
  }),
  z.object({
    type: z.literal('end'),
    ...entry,
    outcome: z.string(),
    exitCode: z.number().nullable(),
    reason: z.string().optional(),
    error: z.string().optional(),
    stdoutBytes: count,
    stderrBytes: count,
    redactions: count,
    runMs: z.number(),
  }),
  /** Start of a tool call, without its arguments. `producer` signed the call, where keys are configured. */
  z.object({
    type: z.literal('tool-start'),
    ...{ tool: z.string(), call: z.string() },
    submittedBy: callerSchema.optional(),
    producer: z.string().optional(),
  }),
  /** A tool call that a person is asked about. It has not started. */
  z.object({
    type: z.literal('tool-asks'),
    ...{ tool: z.string(), call: z.string(), question: z.string() },
    submittedBy: callerSchema.optional(),
  }),
  z.object({ type: z.literal('tool-end'), tool: z.string(), call: z.string(), outcome: z.string() }),
  /** This host begins to drive a detached batch. `by` is who submitted it, as the submitter's process said. */
  z.object({ type: z.literal('batch-start'), batch: z.string(), id: z.string(), by: z.string(), fence: count }),
  /** This host drives a detached batch no longer. Another driver may continue one that it has `left`. */
  z.object({
    type: z.literal('batch-end'),
    batch: z.string(),
    id: z.string(),
    how: z.enum(['ended', 'left']),
    stoppedBy: z.string().optional(),
    error: z.string().optional(),
  }),
  /** Start or end of a terminal. Its input is not recorded. */
  z.object({ type: z.literal('terminal-start'), ...terminal, producer: z.string().optional() }),
  z.object({ type: z.literal('terminal-end'), ...terminal, reason: z.string() }),
  /**
   * Connections that a session's proxy denied. The first one is recorded at once; later ones are recorded together,
   * with their number as `count`.
   */
  z.object({
    type: z.literal('egress-refused'),
    session: z.string(),
    generation: z.string(),
    host: z.string().optional(),
    port: z.number().optional(),
    reason: z.string(),
    count,
  }),
  /** Invalid signatures. `problem` is the failed part of the check. `count` is absent for a single signature. */
  z.object({
    type: z.literal('unauthorized'),
    kind: z.string(),
    session: z.string().optional(),
    generation: z.string().optional(),
    entry: z.string().optional(),
    question: z.string().optional(),
    problem: z.string(),
    count: count.optional(),
  }),
  /** The line before this one is incomplete, because the process or its disk ended while the line was written. */
  z.object({ type: z.literal('interrupted') }),
  /** Number of records of starts and ends that could not be written. */
  z.object({ type: z.literal('lost'), count }),
  /** Redis lacked the records after `found`, up to `through`, which it had confirmed or may have had. */
  z.object({ type: z.literal('rewound'), found: count, through: count }),
  /** The process of the chain ends in order. This record is the last one of a chain in Redis. */
  z.object({ type: z.literal('closed') }),
  /** Records up to this one were removed because of their age. */
  z.object({ type: z.literal('pruned'), through: count }),
  /** When the host started, its audit lacked the record that was anchored last. */
  z.object({ type: z.literal('cut'), anchored: count, found: count }),
]);
export type AuditEvent = z.infer<typeof auditEventSchema>;

export const auditRecordSchema = z.object({
  /** Number of the record, from 1, for one tenant on one host, or of one process of a host. */
  n: count,
  at: z.string(),
  /** Id of the key that authenticates the record. */
  key: z.string(),
  /** `mac` of the record before. */
  previous: z.string(),
  event: auditEventSchema,
});
export type AuditRecord = z.infer<typeof auditRecordSchema>;

/** The number and MAC of a chain's last record. */
export const auditHeadSchema = z.object({
  /** Number of the record, from 1. */
  n: count,
  /** MAC over the record and all records before it. */
  mac: z.string(),
});
export type AuditHead = z.infer<typeof auditHeadSchema>;

/** Head of a chain in Redis, with the time of its record (ms). */
export const storedAuditHeadSchema = auditHeadSchema.extend({ at: z.number() });

/** Name of a chain of an audit in Redis: the records about one tenant by one process of a host. */
export interface AuditChainName {
  /** Id of the host. */
  host: string;
  /** Random id of the process. */
  boot: string;
  /** Tenant that the records are about. */
  tenant: string;
}

/** Returns the name of a chain as it stands in Redis. Its parts have no spaces. */
export const toAuditChain = ({ host, boot, tenant }: AuditChainName) => `${host} ${boot} ${tenant}`;

/** Parses the name of a chain. Returns undefined for other text. */
export function parseAuditChain(text: string): AuditChainName | undefined {
  const [host, boot, tenant, ...others] = text.split(' ');
  return host && boot && tenant && others.length === 0 ? { host, boot, tenant } : undefined;
}
