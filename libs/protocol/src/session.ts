import { z } from 'zod';
import { envSchema, secretsSchema } from './env.ts';
import { DEFAULT_POLICY, executionPolicySchema } from './execution-policy.ts';
import { durationSchema, sandboxPathSchema, scriptSchema, shellTextSchema } from './field-schemas.ts';
import { labelsSchema } from './labels.ts';
import { LIMITS } from './limits.ts';
import { redactionRulesSchema } from './redaction.ts';

const IMAGE_PATTERN =
  /^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?\/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;

const imageSchema = z
  .string('must be a string')
  .max(256, { error: 'must be at most 256 characters', abort: true })
  .regex(IMAGE_PATTERN, 'is not an image name (registry/name:tag or name@sha256:digest)');

const userSchema = z
  .string('must be a string')
  .min(1, { error: 'must be a non-empty string when provided', abort: true })
  .regex(
    /^(?:[a-z_][a-z0-9_-]{0,31}|[0-9]{1,9})(?::(?:[a-z_][a-z0-9_-]{0,31}|[0-9]{1,9}))?$/,
    'is not a user (name or uid, with :group if wanted)',
  );

const wholePositive = (maximum: number, otherwise = 'must be positive') =>
  z
    .number('must be a number')
    .int('must be a whole number')
    .min(1, otherwise)
    .max(maximum, `must be at most ${maximum}`);

const outputSchema = z.strictObject({
  /** Maximum bytes of each stream in the Result, 1 to 1,048,576. Default: 262,144. */
  maxBytes: wholePositive(LIMITS.outputBytes).default(262_144),
  /** Maximum lines of each stream in the Result, 1 to 1,000,000. Default: 10,000. */
  maxLines: wholePositive(LIMITS.outputLines).default(10_000),
  /** The part of a longer output that the Result keeps. Default: `'head-tail'`. */
  keep: z.enum(['head', 'tail', 'head-tail'], "must be 'head', 'tail' or 'head-tail'").default('head-tail'),
  /** Bytes of a command that its stream carries, 1 to 67,108,864. Further bytes are counted, and are in the log. Default: 8,388,608. */
  streamBytes: wholePositive(LIMITS.streamBytes).default(8_388_608),
});

/** Defaults of the limits that control groups enforce. */
const DEFAULT_LIMITS = { memoryBytes: 536_870_912, cpus: 1, pids: 256 } as const;

const limitsSchema = z.strictObject({
  memoryBytes: z
    .number('must be a number of bytes')
    .int('must be a whole number of bytes')
    .min(1, { error: 'must be positive if provided', abort: true })
    .min(33_554_432, 'must be at least 33554432 bytes (32 MiB)')
    .max(2 ** 50, 'must be at most 2^50 bytes')
    .optional(),
  cpus: z.number('must be a number').min(0.01, 'must be at least 0.01').max(1_024, 'must be at most 1024').optional(),
  pids: z
    .number('must be a number')
    .int('must be a whole number')
    .min(16, 'must be at least 16')
    .max(65_536, 'must be at most 65536')
    .optional(),
  cpuTimeSeconds: wholePositive(2 ** 31 - 1, 'must be positive if provided').optional(),
  diskBytes: wholePositive(2 ** 50, 'must be positive if provided').optional(),
});

/** Fills in the three limits that control groups enforce. */
export function withDefaultLimits(limits: z.infer<typeof limitsSchema>) {
  const { memoryBytes, cpus, pids } = DEFAULT_LIMITS;
  return {
    ...limits,
    memoryBytes: limits.memoryBytes ?? memoryBytes,
    cpus: limits.cpus ?? cpus,
    pids: limits.pids ?? pids,
  };
}

/** 0 is first. Sessions of one priority are taken in the order in which they began to wait. */
export const prioritySchema = z
  .number('must be a number')
  .int('must be a whole number')
  .min(0, 'must be 0 to 2097152')
  .max(2_097_152, 'must be 0 to 2097152');

const fieldsSchema = z.strictObject({
  /** Where the shell runs. Default: `'docker'`. */
  policy: executionPolicySchema.default(executionPolicySchema.parse(DEFAULT_POLICY)),
  /** Container image. Default: the image of the host. Refused under the policy `host`. */
  image: imageSchema.optional(),
  /** Variables of the shell. Names match `[A-Za-z_][A-Za-z0-9_]*`; a value is at most 131,072 bytes, all of them 1 MiB. */
  env: envSchema.default({}),
  /** Directory in which a fresh shell starts. Default: `/workspace`. */
  cwd: sandboxPathSchema.default('/workspace'),
  /** Folder of the host that is mounted as `/workspace`; the operator of the host must allow it. Default: an empty folder that ends with the sandbox. */
  workspace: sandboxPathSchema.optional(),
  /** Program and arguments of the shell, at most 64. Default: chosen by the host. */
  shell: z
    .array(shellTextSchema(LIMITS.pathBytes).min(1))
    .min(1, 'must contain at least one argument')
    .max(64)
    .optional(),
  /** Name or uid, with `:group` if wanted. Default: 1000:1000. Refused under the policy `host`. */
  user: userSchema.optional(),
  /** Scripts that every fresh shell runs before any command, in order. At most 64. When one fails, so does every command. */
  startupCommands: z.array(scriptSchema).max(LIMITS.startupCommands).default([]),
  /** Scripts that run before the shell is ended in order: at close, idle timeout and greatest age. At most 64. */
  shutdownCommands: z.array(scriptSchema).max(LIMITS.startupCommands).default([]),
  /** Limit of a command that has no `timeoutMs` of its own, 1 to 86,400,000 ms. Default: 30,000. */
  commandTimeoutMs: durationSchema().default(30_000),
  /** Limit for opening the sandbox and running the startup commands, 1 to 86,400,000 ms. Time in the queue does not count. Default: 30,000. */
  startupTimeoutMs: durationSchema().default(30_000),
  /** Limit for ending the shell at close or restart, 1 to 86,400,000 ms. Default: 10,000. */
  terminationTimeoutMs: durationSchema().default(10_000),
  /** Bounds of the output of each command. */
  output: outputSchema.default(outputSchema.parse({})),
  /** Rules that replace or block parts of the output. At most 64. Default: none. */
  redaction: redactionRulesSchema.default([]),
  /** Variables of the shell whose values are redacted in every encoding. A value is at most 16,384 bytes. A name must not be in `env` as well. */
  secrets: secretsSchema.default({}),
  /** Resources of the sandbox. */
  limits: limitsSchema.default(limitsSchema.parse({})),
  /** An idle session gives up shell and slot after this time, 1 to 86,400,000 ms; its next command gets a fresh shell. Default: 1,800,000 (30 min). */
  idleTimeoutMs: durationSchema().default(1_800_000),
  /** A shell of this age is ended, and the next command gets a fresh one; 1 ms to 30 days. Default: 86,400,000 (1 day). */
  maxLifetimeMs: durationSchema(1, 30 * 86_400_000).default(86_400_000),
  /** When its host is lost: `fail` ends the waiting commands with an error, `recreate` continues them in a fresh shell elsewhere. Default: `'fail'`. */
  onHostLoss: z.enum(['fail', 'recreate'], "must be 'fail' or 'recreate'").default('fail'),
  /** Time in ms that a lost host has to come back before `onHostLoss` applies; 0 to 3,600,000. Default: 60,000. */
  hostGraceMs: durationSchema(0, 3_600_000).default(60_000),
  /** Place in the queue of sessions, 0 to 2,097,152; 0 is first. Default: 0. */
  priority: prioritySchema.default(0),
  /** Names and values in clear by which sessions are placed and listed. */
  labels: labelsSchema.default({}),
});

/** Rejects a name that is in both: otherwise the order of the exports would decide whether its value is a secret. */
function refuseDoubles({ env, secrets }: { env: object; secrets: object }, context: z.RefinementCtx): void {
  for (const name of Object.keys(secrets).filter((secret) => Object.hasOwn(env, secret)))
    context.addIssue({ code: 'custom', path: ['secrets', name], message: 'is in env as well' });
}

/** The spec of a session. Parsing fills in every default; two specs are the same when they are equal after that. */
export const sessionSpecSchema = fieldsSchema
  .check(({ value: { policy, image, user }, issues }) => {
    if (policy.type !== 'host') return;
    const refuse = (field: string, message: string) =>
      issues.push({ code: 'custom', path: [field], message, input: field });
    if (image !== undefined) refuse('image', 'has no meaning under the host policy, which runs no image');
    if (user !== undefined) refuse('user', "is named by the host's operator under the host policy");
  })
  .superRefine(refuseDoubles)
  // A host without control groups cannot enforce these three. There, defaults are not filled in, and limits that were asked for are refused.
  .transform((spec) => (spec.policy.type === 'docker' ? { ...spec, limits: withDefaultLimits(spec.limits) } : spec));
export type SessionSpec = z.input<typeof sessionSpecSchema>;
export type ResolvedSessionSpec = z.infer<typeof sessionSpecSchema>;

/** The lowest schema version that understands the spec. */
export function specSchema(_spec: ResolvedSessionSpec): number {
  return 1;
}

/** JSON with sorted keys, so that equal values give equal text. */
export function toCanonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : inner,
  );
}

export const SESSION_STATES = [
  'queued',
  'starting',
  'ready',
  'busy',
  'unreachable',
  'closing',
  'closed',
  'lost',
] as const;
export type SessionState = (typeof SESSION_STATES)[number];

export interface SessionInfo {
  id: string;
  state: SessionState;
  /** The host that has the session, or null while none has. */
  hostId: string | null;
  /** Number of shells that the session has had. */
  epoch: number;
  /** Entries that wait to be started: commands, file operations, restarts. */
  queuedCommands: number;
  /** Its position in the queue for a slot, from 1, among the sessions that wait for the same execution policy. */
  position?: number;
  /** Estimated wait in ms, from how long sessions lately held a slot. Absent before any slot was freed. */
  etaMs?: number;
  /** Why no live host can run the session, in a sentence. Absent when one can, or when its own host is alive. Its commands wait meanwhile. */
  noHostReason?: string;
  runningCommandId?: string;
  /** Processes that outlived the command that started them, with their pids in the sandbox. */
  background: { pid: number; command: string }[];
  /** True when `background` is not known: the host was not asked (in lists), or did not answer in time. */
  backgroundUnknown?: true;
  /** Those of its spec. */
  labels: Record<string, string>;
  /** ISO 8601 */
  createdAt: string;
  /** ISO 8601 */
  lastActiveAt: string;
  /** ISO 8601. Only of a closed session. */
  closedAt?: string;
  /** Why it was closed, in a few words. Only of a closed session. */
  closeReason?: string;
}
