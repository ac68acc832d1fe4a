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
  maxBytes: wholePositive(LIMITS.outputBytes).default(262_144),
  maxLines: wholePositive(LIMITS.outputLines).default(10_000),
  keep: z.enum(['head', 'tail', 'head-tail'], "must be 'head', 'tail' or 'head-tail'").default('head-tail'),
  streamBytes: wholePositive(LIMITS.streamBytes).default(8_388_608),
});

/** Of a session that says nothing else, wherever control groups can enforce them. */
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

/** With the three that control groups enforce filled in. */
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
  policy: executionPolicySchema.default(executionPolicySchema.parse(DEFAULT_POLICY)),
  image: imageSchema.optional(),
  env: envSchema.default({}),
  cwd: sandboxPathSchema.default('/workspace'),
  workspace: sandboxPathSchema.optional(),
  shell: z
    .array(shellTextSchema(LIMITS.pathBytes).min(1))
    .min(1, 'must contain at least one argument')
    .max(64)
    .optional(),
  user: userSchema.optional(),
  startupCommands: z.array(scriptSchema).max(LIMITS.startupCommands).default([]),
  shutdownCommands: z.array(scriptSchema).max(LIMITS.startupCommands).default([]),
  commandTimeoutMs: durationSchema().default(30_000),
  startupTimeoutMs: durationSchema().default(30_000),
  terminationTimeoutMs: durationSchema().default(10_000),
  output: outputSchema.default(outputSchema.parse({})),
  redaction: redactionRulesSchema.default([]),
  /** Variables of the shell, too, which no text may show in any encoding. */
  secrets: secretsSchema.default({}),
  limits: limitsSchema.default(limitsSchema.parse({})),
  idleTimeoutMs: durationSchema().default(1_800_000),
  maxLifetimeMs: durationSchema(1, 30 * 86_400_000).default(86_400_000),
  onHostLoss: z.enum(['fail', 'recreate'], "must be 'fail' or 'recreate'").default('fail'),
  hostGraceMs: durationSchema(0, 3_600_000).default(60_000),
  priority: prioritySchema.default(0),
  labels: labelsSchema.default({}),
});

/** A name that is both would be shown, or not, by the order in which they are exported. */
function refuseDoubles({ env, secrets }: { env: object; secrets: object }, context: z.RefinementCtx): void {
  for (const name of Object.keys(secrets).filter((secret) => Object.hasOwn(env, secret)))
    context.addIssue({ code: 'custom', path: ['secrets', name], message: 'is in env as well' });
}

/** How a session is to be run, with every default filled in. Two specs are the same when they are equal after defaults. */
export const sessionSpecSchema = fieldsSchema
  .check(({ value: { policy, image, user }, issues }) => {
    if (policy.type !== 'host') return;
    const refuse = (field: string, message: string) =>
      issues.push({ code: 'custom', path: [field], message, input: field });
    if (image !== undefined) refuse('image', 'has no meaning under the host policy, which runs no image');
    if (user !== undefined) refuse('user', "is named by the host's operator under the host policy");
  })
  .superRefine(refuseDoubles)
  // On a host without control groups these three cannot be had: what nobody asked for is then left, and what was asked for refused.
  .transform((spec) => (spec.policy.type === 'docker' ? { ...spec, limits: withDefaultLimits(spec.limits) } : spec));
export type SessionSpec = z.input<typeof sessionSpecSchema>;
export type ResolvedSessionSpec = z.infer<typeof sessionSpecSchema>;

/** JSON with sorted keys: equal specs give equal text, in whatever order they were written. */
export function toCanonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : inner,
  );
}

export type SessionState = 'queued' | 'starting' | 'ready' | 'busy' | 'unreachable' | 'closing' | 'closed' | 'lost';

export interface SessionInfo {
  id: string;
  state: SessionState;
  hostId: string | null;
  epoch: number;
  queuedCommands: number;
  /** Its place in the line for a slot, from 1, among the sessions that wait for the same execution policy. */
  position?: number;
  /** An estimate, by how long sessions lately held a slot; absent before any has given one back. */
  etaMs?: number;
  /** Why no live host can run the session, in a sentence. Absent when one can, or when its own host is alive. Its commands wait meanwhile. */
  noHostReason?: string;
  runningCommandId?: string;
  /** What outlived the command that started it, by pids of the sandbox. */
  background: { pid: number; command: string }[];
  /** Only its host knows what runs in the background, and was not asked (in lists), or has not answered in time. */
  backgroundUnknown?: true;
  createdAt: string;
  lastActiveAt: string;
}
