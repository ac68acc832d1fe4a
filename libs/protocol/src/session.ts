import { z } from 'zod';
import { ASK_BY_DEFAULT, approvalPolicySchema } from './approval.ts';
import { DEFAULTS } from './defaults.ts';
import { envSchema, secretsSchema } from './env.ts';
import { executionPolicySchema, type PolicyName } from './execution-policy.ts';
import { durationSchema, scriptSchema, shellTextSchema, withoutSign } from './field-schemas.ts';
import { sessionIdSchema } from './ids.ts';
import { imageNameSchema } from './image-name.ts';
import { labelsSchema, neededLabelsSchema } from './labels.ts';
import { LIMITS } from './limits.ts';
import { sessionRulesSchema } from './prefix-rule.ts';
import { redactionRulesSchema } from './redaction.ts';
import { sandboxOptionsSchema } from './sandbox-options.ts';
import { refusedSandbox } from './sandbox-table.ts';
import { workspaceOf, workspaceSchema } from './workspace.ts';

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

const outputSchema = z.strictObject(
  {
    maxBytes: wholePositive(LIMITS.outputBytes).default(DEFAULTS.output.maxBytes),
    maxLines: wholePositive(LIMITS.outputLines).default(DEFAULTS.output.maxLines),
    keep: z.enum(['head', 'tail', 'head-tail'], "must be 'head', 'tail' or 'head-tail'").default(DEFAULTS.output.keep),
    streamBytes: wholePositive(LIMITS.streamBytes).default(DEFAULTS.output.streamBytes),
  },
  'must be an object of bounds: maxBytes, maxLines, keep, streamBytes',
);

export const limitsSchema = z.strictObject(
  {
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
    fileSizeBytes: wholePositive(2 ** 50, 'must be positive if provided')
      .min(LIMITS.leastFileSizeBytes, `must be at least ${LIMITS.leastFileSizeBytes} bytes (16 MiB)`)
      .optional(),
    resources: z
      .record(
        z.string().regex(/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/),
        wholePositive(LIMITS.resourceCount),
        {
          error: ({ code }) =>
            code === 'invalid_key' ? "must be the name of a resource, such as 'nvidia.com/gpu'" : 'must be an object',
        },
      )
      .refine(
        (resources) => Object.keys(resources).length <= LIMITS.resources,
        `must hold at most ${LIMITS.resources} resources`,
      )
      .optional(),
  },
  'must be an object of limits: memoryBytes, cpus, pids, cpuTimeSeconds, diskBytes, fileSizeBytes, resources',
);

export function withDefaultLimits(limits: z.infer<typeof limitsSchema>) {
  const { memoryBytes, cpus, pids } = DEFAULTS.limits;
  return {
    ...limits,
    memoryBytes: limits.memoryBytes ?? memoryBytes,
    cpus: limits.cpus ?? cpus,
    pids: limits.pids ?? pids,
  };
}

/** Fills in the limits that the policy has by default. */
function withLimitsOf({ type }: { type: PolicyName }, limits: z.infer<typeof limitsSchema>) {
  // A host without control groups cannot enforce all limits, and refuses the limits that it cannot enforce.
  if (type !== 'docker' && type !== 'kubernetes') return limits;
  // Only the kubelet bounds the processes of a Pod, for all Pods of a node alike.
  return type === 'docker' ? withDefaultLimits(limits) : { ...withDefaultLimits(limits), pids: limits.pids };
}

/** Minutes by which a session waits as if it had come later than it did, among the sessions of its tenant. */
export const prioritySchema = z
  .number('must be a number')
  .int('must be a whole number')
  .min(0, 'must be 0 to 1000')
  .max(1_000, 'must be 0 to 1000')
  .overwrite(withoutSign);

const scriptsSchema = z
  .array(scriptSchema, 'must be a list of scripts')
  .max(LIMITS.startupCommands, `must hold at most ${LIMITS.startupCommands} scripts`);

const { session: defaults } = DEFAULTS;
/** A `cwd` that stands for the directory that the image names. */
export const IMAGE_CWD = 'image';

const fieldsSchema = z.strictObject({
  policy: executionPolicySchema.default(() => executionPolicySchema.parse(defaults.policy)),
  image: imageNameSchema.optional(),
  env: envSchema.default(defaults.env),
  cwd: shellTextSchema(LIMITS.pathBytes)
    .refine((path) => path.startsWith('/') || path === IMAGE_CWD, 'must be an absolute path')
    .optional(),
  workspace: workspaceSchema.optional(),
  shell: z
    .array(
      shellTextSchema(LIMITS.pathBytes).min(1, 'must not be empty'),
      'must be a list of words: the program and its arguments',
    )
    .min(1, 'must contain at least one argument')
    .max(64, 'must be at most 64 words')
    .optional(),
  user: userSchema.optional(),
  startupCommands: scriptsSchema.default([]),
  shutdownCommands: scriptsSchema.default([]),
  commandTimeoutMs: durationSchema().default(defaults.commandTimeoutMs),
  startupTimeoutMs: durationSchema().default(defaults.startupTimeoutMs),
  terminationTimeoutMs: durationSchema().default(defaults.terminationTimeoutMs),
  output: outputSchema.default(DEFAULTS.output),
  redaction: redactionRulesSchema.default([]),
  redactFormats: z.boolean('must be true or false').default(defaults.redactFormats),
  secrets: secretsSchema.default(defaults.secrets),
  sandbox: sandboxOptionsSchema.optional(),
  approval: approvalPolicySchema.optional(),
  askByDefault: z.enum(ASK_BY_DEFAULT, "must be 'unreadable' or 'sandboxed'").optional(),
  approvalTimeoutMs: durationSchema().default(defaults.approvalTimeoutMs),
  execPolicy: sessionRulesSchema.optional(),
  limits: limitsSchema.default({}),
  idleTimeoutMs: durationSchema().default(defaults.idleTimeoutMs),
  maxLifetimeMs: durationSchema(1, 30 * 86_400_000).default(defaults.maxLifetimeMs),
  onHostLoss: z.enum(['fail', 'recreate'], "must be 'fail' or 'recreate'").default(defaults.onHostLoss),
  hostGraceMs: durationSchema(0, 3_600_000).default(defaults.hostGraceMs),
  keepOnFailure: z.boolean('must be true or false').default(defaults.keepOnFailure),
  priority: prioritySchema.default(defaults.priority),
  labels: labelsSchema.default(defaults.labels),
  hosts: neededLabelsSchema.default(defaults.hosts),
  near: sessionIdSchema.optional(),
});

/** Rejects a name in `env` and `secrets`: the order of exports would decide whether its value is a secret. */
function refuseDoubles({ env, secrets }: { env: object; secrets: object }, context: z.RefinementCtx): void {
  for (const name of Object.keys(secrets).filter((secret) => Object.hasOwn(env, secret)))
    context.addIssue({ code: 'custom', path: ['secrets', name], message: 'is in env as well' });
}

/** Refuses what no cluster gives a Pod: a directory of a host, and a uid that is or may be 0. */
function refuseInPod(
  { user, workspace, cwd, keepOnFailure }: z.output<typeof fieldsSchema>,
  refuse: (field: string, message: string) => void,
): void {
  if (workspace !== undefined)
    refuse(
      'workspace',
      'is a directory of a host; a Pod has only the workspace that the operator sets for all sessions',
    );
  if (user !== undefined && !/^[1-9]\d*(?::[1-9]\d*)?$/.test(user))
    refuse('user', 'must be uid:gid, both above 0, under the kubernetes policy: nobody there is root or a name');
  if (keepOnFailure)
    refuse('keepOnFailure', 'has no meaning under the kubernetes policy, where an ended Pod is deleted');
  if (cwd === IMAGE_CWD) refuse('cwd', 'is no absolute path; a worker of Pods does not read their images');
}

/** The spec of a session. Parsing fills in every default, so equal parsed specs are the same. */
export const sessionSpecSchema = fieldsSchema
  .check(({ value, issues }) => {
    const { policy, image, user, cwd, workspace, approval, askByDefault, keepOnFailure, limits } = value;
    const refuse = (field: string, message: string) =>
      issues.push({ code: 'custom', path: field.split('.'), message, input: field });
    if (askByDefault !== undefined && approval === undefined)
      refuse('askByDefault', 'has a meaning only with `approval`: without one nothing is asked by default');
    if (cwd === IMAGE_CWD && workspace !== undefined)
      refuse('cwd', 'must be an absolute path where a workspace is mounted');
    if (policy.type !== 'kubernetes' && limits.resources !== undefined)
      refuse(
        'limits.resources',
        `are resources of a Kubernetes cluster, which the ${policy.type} policy does not have`,
      );
    if (policy.type === 'docker') return;
    if (policy.type === 'kubernetes') return refuseInPod(value, refuse);
    if (image !== undefined) refuse('image', `has no meaning under the ${policy.type} policy, which runs no image`);
    if (keepOnFailure)
      refuse('keepOnFailure', `has no meaning under the ${policy.type} policy, which has no container`);
    if (cwd === IMAGE_CWD) refuse('cwd', `is no absolute path; the ${policy.type} policy runs no image`);
    const mount = workspaceOf({ workspace });
    if (policy.type !== 'bubblewrap' && mount?.readOnly)
      refuse('workspace', `cannot be read-only under the ${policy.type} policy`);
    if (mount !== undefined && mount.target !== defaults.cwd)
      refuse('workspace', `can only be at ${defaults.cwd} under the ${policy.type} policy`);
    if (user !== undefined) refuse('user', `is named by the host's operator under the ${policy.type} policy`);
  })
  .check(({ value, issues }) => {
    for (const { path, message } of refusedSandbox(value))
      issues.push({ code: 'custom', path: path.split('.'), message, input: value.sandbox });
  })
  .superRefine(refuseDoubles)
  .transform((spec) => {
    const { cwd = workspaceOf(spec)?.target ?? defaults.cwd } = spec;
    return { ...spec, cwd, limits: withLimitsOf(spec.policy, spec.limits) };
  });
export type ResolvedSessionSpec = z.infer<typeof sessionSpecSchema>;

/** Returns the lowest schema version that understands the spec. */
export function specSchema({ sandbox, approval, execPolicy, keepOnFailure, near, hosts }: ResolvedSessionSpec): number {
  const newer = [sandbox, approval, execPolicy, keepOnFailure || undefined, near];
  return newer.some((field) => field !== undefined) || Object.keys(hosts).length > 0 ? 2 : 1;
}

/** Reason of the event `session.closed` of a driven session that nobody closed. */
export const DRIVER_GONE = 'its driver is gone';
