import { z } from 'zod';
import { DEFAULTS } from './defaults.ts';

// The execution policies that a session may ask for. To add one: an interface and
// a schema here, its defaults and refusals in libs/policy, and an opener of its
// sandboxes in the worker (open-policies.ts, where the compiler requires it).

/** A container of its own for each session. */
export interface DockerPolicy {
  type: 'docker';
  /**
   * The root file system of the container is read-only; `/workspace`,
   * `/tmp` and `/dev/shm` stay writable. Default: false.
   */
  readOnlyRootfs?: boolean | undefined;
  /**
   * Container runtime, as the engine names it (`runsc`, `kata`);
   * the operator must allow it. Default: that of the engine.
   */
  runtime?: string | undefined;
}

/** The host itself, without a container, as the user that its operator names. */
export interface HostPolicy {
  type: 'host';
}

/**
 * The host, as under `host`, behind bubblewrap: an empty root folder with
 * the host's programs in it, no network, and a filter of system calls.
 */
export interface BubblewrapPolicy {
  type: 'bubblewrap';
}

/** The host, as under `host`, behind the sandbox of the Codex CLI. */
export interface CodexPolicy {
  type: 'codex';
  /**
   * Settings of Codex by dotted key, such as `sandbox_workspace_write.exclude_slash_tmp`.
   * Only what narrows the sandbox is accepted. Default: none.
   */
  configOverrides?: Record<string, unknown> | undefined;
}

/** Where a shell runs, with the options of that kind. The operator of a host decides which policies it offers. */
export type ExecutionPolicy = DockerPolicy | HostPolicy | BubblewrapPolicy | CodexPolicy;
export type PolicyName = ExecutionPolicy['type'];

const POLICY_SCHEMAS = [
  z.strictObject({
    type: z.literal('docker'),
    readOnlyRootfs: z.boolean('must be true or false').default(false),
    runtime: z
      .string('must be a string')
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be the name of a runtime')
      .optional(),
  }),
  z.strictObject({ type: z.literal('host') }),
  z.strictObject({ type: z.literal('bubblewrap') }),
  z.strictObject({
    type: z.literal('codex'),
    configOverrides: z
      .record(z.string().regex(/^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/, 'must be a dotted key'), z.json(), {
        error: ({ code }) => (code === 'invalid_key' ? 'must be a dotted key' : 'must be an object'),
      })
      .refine((overrides) => Object.keys(overrides).length <= 32, 'must hold at most 32 keys')
      .default({}),
  }),
] as const;

export const POLICY_NAMES: readonly PolicyName[] = POLICY_SCHEMAS.map(({ shape }) => shape.type.value);

/** The policy of a session that names none, and of a host whose operator lists none. */
export const DEFAULT_POLICY: PolicyName = DEFAULTS.session.policy;

/** The names as a list within a sentence: `'docker' and 'host'`. */
export function listPolicyNames(conjunction: 'and' | 'or'): string {
  const quoted = POLICY_NAMES.map((name) => `'${name}'`);
  return `${quoted.slice(0, -1).join(', ')} ${conjunction} ${quoted.at(-1)}`;
}

const optionsSchema = z.discriminatedUnion(
  'type',
  POLICY_SCHEMAS,
  `must be ${listPolicyNames('or')}, or { type: '${DEFAULT_POLICY}', … }`,
);

/** Accepts `{ type, …options }`, or the name alone. */
export const executionPolicySchema: z.ZodType<
  z.output<typeof optionsSchema>,
  PolicyName | ExecutionPolicy
> = z.preprocess(
  // zod would wait for a promise that a preprocessor returns, which a synchronous parse cannot.
  (policy) => (typeof policy === 'string' ? { type: policy } : policy instanceof Promise ? {} : policy),
  optionsSchema,
) as never;
