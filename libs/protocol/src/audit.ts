import { z } from 'zod';

// What a host writes down about the entries that it saw, as one record each. Every text in it is redacted.

const entry = { session: z.string(), generation: z.string(), entry: z.string() };
const count = z.number().int().nonnegative();
const terminal = { session: z.string(), generation: z.string(), terminal: z.string() };

export const auditEventSchema = z.discriminatedUnion('type', [
  /** This host saw the entry for the first time. `producer`: who signed it, where keys are configured. */
  z.object({
    type: z.literal('submission'),
    ...entry,
    kind: z.string(),
    acceptedAt: z.string(),
    policy: z.string(),
    image: z.string().optional(),
    script: z.string().optional(),
    /** Characters of the script that are not in `script`. */
    scriptOmitted: count.optional(),
    operation: z.string().optional(),
    path: z.string().optional(),
    producer: z.string().optional(),
  }),
  z.object({
    type: z.literal('decision'),
    ...entry,
    decision: z.enum(['admit', 'hold', 'deny']),
    reason: z.string().optional(),
    by: z.string().optional(),
    /** The id of what a person is asked, for `hold`; its `answer` has it too. */
    question: z.string().optional(),
    outside: z.literal(true).optional(),
    /** Names of the rules that decided. */
    digest: z.string(),
  }),
  /** What rules that only report would have decided. `rules`: the patterns of those that matched. */
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
    /** Whose key signed it, where keys are configured. */
    approver: z.string().optional(),
    reason: z.string().optional(),
  }),
  /**
   * Which attempt it was, and where. `attempt` is 2 when its sandbox
   * has denied a first one something. `outside`: in the wider sandbox.
   */
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
  /**
   * A tool was called. Its arguments are not written down. `producer`: who signed the call, where keys are configured.
   */
  z.object({ type: z.literal('tool-start'), tool: z.string(), call: z.string(), producer: z.string().optional() }),
  /** A call that a person was asked about. It has not started. */
  z.object({ type: z.literal('tool-asks'), tool: z.string(), call: z.string(), question: z.string() }),
  z.object({ type: z.literal('tool-end'), tool: z.string(), call: z.string(), outcome: z.string() }),
  /** A terminal was opened, or ended. What is typed there is not written down. */
  z.object({ type: z.literal('terminal-start'), ...terminal, producer: z.string().optional() }),
  z.object({ type: z.literal('terminal-end'), ...terminal, reason: z.string() }),
  /**
   * The proxy of a session let its programs not reach this.
   * `count` of them, of which only the first is written at once.
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
  /**
   * Something was not signed as it must be. `problem`: which part
   * of the check failed. `count`: more than once, when it is not 1.
   */
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
  /** The line before is incomplete: the process or its disk ended in the middle of it. */
  z.object({ type: z.literal('interrupted') }),
  /** Records of starts and ends that could not be written. */
  z.object({ type: z.literal('lost'), count }),
  /** Everything up to this record was removed because of its age. */
  z.object({ type: z.literal('pruned'), through: count }),
  /** At its start the host did not find the record that was anchored last. */
  z.object({ type: z.literal('cut'), anchored: count, found: count }),
]);
export type AuditEvent = z.infer<typeof auditEventSchema>;

export const auditRecordSchema = z.object({
  /** Counts the records of a tenant on a host, from 1. */
  n: count,
  at: z.string(),
  /** Id of the key that authenticates it. */
  key: z.string(),
  /** `mac` of the record before. */
  previous: z.string(),
  event: auditEventSchema,
});
export type AuditRecord = z.infer<typeof auditRecordSchema>;

/** The last record of a chain, and what authenticates it with everything before it. */
export const auditHeadSchema = z.object({
  /** The number of the record, from 1. */
  n: count,
  /** What authenticates it, with every record before it. */
  mac: z.string(),
});
export type AuditHead = z.infer<typeof auditHeadSchema>;
