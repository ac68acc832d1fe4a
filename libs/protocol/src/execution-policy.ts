import { z } from 'zod';
import { DEFAULTS } from './defaults.ts';

// The execution policies of a session. A new policy needs an interface and a schema here, defaults and refusals in
// libs/policy, and an opener in the worker (open-policies.ts, where the compiler requires it).

/** A separate container for each session. */
export interface DockerPolicy {
  type: 'docker';
  /**
   * Whether the root file system is read-only. `/workspace`, `/tmp` and `/dev/shm` stay writable.
   * @default false
   */
  readOnlyRootfs?: boolean | undefined;
  /**
   * Container runtime (`runsc`, `kata`), which the operator must allow.
   * @default that of the engine
   */
  runtime?: string | undefined;
}

/** The host itself, without a container. Commands run as the user that its operator names. */
export interface HostPolicy {
  type: 'host';
}

/**
 * Policy `host` with bubblewrap: no network, a filter of system calls, and a root directory of the host's programs
 * only.
 */
export interface BubblewrapPolicy {
  type: 'bubblewrap';
}

/** Policy `host` with the sandbox of the Codex CLI. */
export interface CodexPolicy {
  type: 'codex';
  /**
   * Settings that narrow Codex's sandbox, such as `sandbox_workspace_write.exclude_slash_tmp`.
   * @default none
   * @limit 32 settings
   */
  configOverrides?: Record<string, unknown> | undefined;
}

/** A separate Pod for each session, in the cluster of its worker. */
export interface KubernetesPolicy {
  type: 'kubernetes';
  /**
   * Whether the root file system is read-only. `/workspace`, `/tmp` and `/dev/shm` stay writable.
   * @default false
   */
  readOnlyRootfs?: boolean | undefined;
  /**
   * RuntimeClass of the Pod, which the operator must allow.
   * @default that of the cluster
   */
  runtimeClass?: string | undefined;
}

/** Where a shell runs, with the policy's options. The operator of a host decides which policies it offers. */
export type ExecutionPolicy = DockerPolicy | HostPolicy | BubblewrapPolicy | CodexPolicy | KubernetesPolicy;
export type PolicyName = ExecutionPolicy['type'];

const policies: Record<PolicyName, true> = {
  docker: true,
  host: true,
  bubblewrap: true,
  codex: true,
  kubernetes: true,
};
export const POLICY_NAMES = Object.keys(policies) as readonly PolicyName[];

/** Policy of a session whose spec names none, and of a host whose operator lists none. */
export const DEFAULT_POLICY: PolicyName = DEFAULTS.session.policy;

/**
 * Tells whether any worker can reach a shell of the policy. Such a shell outlives its worker: the next one that takes
 * the lease adopts it, so its sessions move from worker to worker.
 */
export const isMovable = (policy: PolicyName) => policy === 'kubernetes';

/** Joins the names within a sentence: `'docker' and 'host'`. */
export function listPolicyNames(conjunction: 'and' | 'or'): string {
  const quoted = POLICY_NAMES.map((name) => `'${name}'`);
  return `${quoted.slice(0, -1).join(', ')} ${conjunction} ${quoted.at(-1)}`;
}

const readOnlyRootfsSchema = z.boolean('must be true or false').default(false).meta({
  description: 'Whether the root file system is read-only. `/workspace`, `/tmp` and `/dev/shm` stay writable.',
});

type Json = z.core.util.JSONType;
/** Any value of JSON. It refers to itself by its id, which a schema of zod's own for this has not. */
const jsonValueSchema: z.ZodType<Json, Json> = z
  .lazy(() =>
    z.union([
      z.string(),
      z.number(),
      z.boolean(),
      z.null(),
      z.array(jsonValueSchema),
      z.record(z.string(), jsonValueSchema),
    ]),
  )
  .meta({ id: 'Json', description: 'Any value of JSON.' });

const optionsSchema = z.discriminatedUnion(
  'type',
  [
    z
      .strictObject({
        type: z.literal('docker'),
        readOnlyRootfs: readOnlyRootfsSchema,
        runtime: z
          .string('must be a string')
          .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be the name of a runtime')
          .optional()
          .meta({
            description: 'Container runtime (`runsc`, `kata`), which the operator must allow.',
            otherwise: 'that of the engine',
          }),
      })
      .meta({ id: 'DockerPolicy', description: 'A separate container for each session.' }),
    z.strictObject({ type: z.literal('host') }).meta({
      id: 'HostPolicy',
      description: 'The host itself, without a container. Commands run as the user that its operator names.',
    }),
    z.strictObject({ type: z.literal('bubblewrap') }).meta({
      id: 'BubblewrapPolicy',
      description:
        "Policy `host` with bubblewrap: no network, a filter of system calls, and a root directory of the host's " +
        'programs only.',
    }),
    z
      .strictObject({
        type: z.literal('codex'),
        configOverrides: z
          .record(z.string().regex(/^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/, 'must be a dotted key'), jsonValueSchema, {
            error: ({ code }) => (code === 'invalid_key' ? 'must be a dotted key' : 'must be an object'),
          })
          .refine((overrides) => Object.keys(overrides).length <= 32, 'must hold at most 32 keys')
          .default({})
          .meta({
            description: "Settings that narrow Codex's sandbox, such as `sandbox_workspace_write.exclude_slash_tmp`.",
            limit: '32 settings',
          }),
      })
      .meta({ id: 'CodexPolicy', description: 'Policy `host` with the sandbox of the Codex CLI.' }),
    z
      .strictObject({
        type: z.literal('kubernetes'),
        readOnlyRootfs: readOnlyRootfsSchema,
        runtimeClass: z
          .string('must be a string')
          .regex(/^[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?$/, 'must be the name of a RuntimeClass')
          .optional()
          .meta({
            description: 'RuntimeClass of the Pod, which the operator must allow.',
            otherwise: 'that of the cluster',
          }),
      })
      .meta({ id: 'KubernetesPolicy', description: 'A separate Pod for each session, in the cluster of its worker.' }),
  ],
  `must be ${listPolicyNames('or')}, or { type: '${DEFAULT_POLICY}', … }`,
);

/** Accepts a policy as `{ type, …options }`, or by its name alone. */
export const executionPolicySchema: z.ZodType<z.output<typeof optionsSchema>, PolicyName | ExecutionPolicy> = z
  .preprocess(
    // A synchronous parse cannot wait for a promise, as zod would do here. So a promise becomes an invalid policy.
    (policy) => (typeof policy === 'string' ? { type: policy } : policy instanceof Promise ? {} : policy),
    optionsSchema,
  )
  .meta({ names: POLICY_NAMES }) as never;
