import type { Fleet, SessionSpec } from '@shellfleet/client';
import { validateRedaction } from '@shellfleet/policy';
import { parseOrThrow, type ResolvedSessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import type { RedactionRuleConfig } from 'langchain';
import { z } from 'zod';
import { DEFAULT_SPEC, type ShellExecutionPolicy } from '../policies/execution-policy.ts';
import { toSessionRule } from './pii-rule.ts';

/** Options of the middleware. Its names are those of LangChain's ShellToolMiddleware, in camel case. */
export interface ShellToolMiddlewareOptions {
  /** Fleet that runs the shell. */
  fleet: Fleet;
  /**
   * Directory of the host that is the workspace of the shell, which the operator must allow.
   * @default an empty directory that ends with the session
   */
  workspaceRoot?: string | undefined;
  /**
   * Scripts that every fresh shell runs first, in order. The agent starts when they have succeeded.
   * @default none
   */
  startupCommands?: string | readonly string[] | undefined;
  /**
   * Scripts that run, in order, before the shell is ended.
   * @default none
   */
  shutdownCommands?: string | readonly string[] | undefined;
  /**
   * Where the shell runs, and its bounds.
   * @default the fleet's default sandbox, with LangChain's bounds
   */
  executionPolicy?: ShellExecutionPolicy | undefined;
  /**
   * Rules for the output, in order.
   * @default none
   */
  redactionRules?: readonly RedactionRuleConfig[] | undefined;
  /**
   * Description of the tool.
   * @default the rules of a persistent shell, and what its sandbox allows
   */
  toolDescription?: string | undefined;
  /**
   * Name of the tool.
   * @default 'shell'
   */
  toolName?: string | undefined;
  /**
   * Program of the shell, or program and arguments.
   * @default chosen by the host
   */
  shellCommand?: string | readonly string[] | undefined;
  /**
   * Variables of the shell. Values become strings.
   * @default none
   */
  env?: Readonly<Record<string, unknown>> | undefined;
  /**
   * Further fields of the session's spec: secrets, approvals, limits and others. It wins over `executionPolicy`, and
   * the options above win over it.
   * @default none
   */
  spec?: SessionSpec | undefined;
  /**
   * Returns the id of the session for the `configurable` of a run.
   * @default the same id for one agent in one thread, and a new id for each run without a thread
   */
  sessionId?: ((configurable: Configurable) => string) | undefined;
  /**
   * Whether the session stays open when the agent ends, so that the next run of the thread goes on in it.
   * @default false
   */
  keepOpen?: boolean | undefined;
}

/** The `configurable` of a run of LangGraph. */
export interface Configurable {
  thread_id?: string | undefined;
  checkpoint_ns?: string | undefined;
  [key: string]: unknown;
}

const listSchema = z
  .union(
    [z.string().transform((one) => [one]), z.array(z.string()).readonly()],
    'must be a script, or a list of scripts',
  )
  .transform((list) => [...list])
  .optional();

/** Texts of LangChain for options that a session's spec would name in another way. */
const textsSchema = z.object({
  startupCommands: listSchema,
  shutdownCommands: listSchema,
  shellCommand: listSchema.refine((words) => words?.length !== 0, 'Shell command must contain at least one argument.'),
  env: z
    .record(z.string(), z.unknown(), {
      error: ({ code }) =>
        code === 'invalid_key' ? 'Environment variable names must be strings.' : 'must be an object of variables',
    })
    .transform((env) => Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)])))
    .optional(),
});

/** Spec of the sessions of a middleware, as given and with every default. */
export interface ShellSpec {
  given: SessionSpec;
  resolved: ResolvedSessionSpec;
}

/** Returns the spec that the options describe. Throws SESSION_SPEC_INVALID for options that can never work. */
export function toShellSpec(options: Omit<ShellToolMiddlewareOptions, 'fleet'>): ShellSpec {
  const { workspaceRoot, redactionRules, executionPolicy, spec = {} } = options;
  const policy = executionPolicy?.spec ?? DEFAULT_SPEC;
  const what = 'The shell tool';
  const { startupCommands, shutdownCommands, shellCommand, env } = parseOrThrow(
    textsSchema,
    options,
    'SESSION_SPEC_INVALID',
    what,
  );
  const given: SessionSpec = {
    ...policy,
    ...spec,
    output: { ...policy.output, ...spec.output },
    limits: { ...policy.limits, ...spec.limits },
    ...(policy.sandbox === undefined && spec.sandbox === undefined
      ? {}
      : { sandbox: { ...policy.sandbox, ...spec.sandbox } }),
    ...present({
      workspace: workspaceRoot,
      startupCommands,
      shutdownCommands,
      shell: shellCommand,
      env,
      redaction: redactionRules?.map(toSessionRule),
    }),
  };
  const resolved = parseOrThrow(sessionSpecSchema, given, 'SESSION_SPEC_INVALID', what);
  validateRedaction(resolved);
  return { given, resolved };
}

/** Returns the fields that are not undefined. */
function present<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}
