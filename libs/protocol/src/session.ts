import type { z } from 'zod';
import { DEFAULTS } from './defaults.ts';
import type { PolicyName } from './execution-policy.ts';
import { refusedSandbox } from './sandbox-table.ts';
import { IMAGE_CWD, sessionFieldsSchema } from './session-fields.ts';
import { type limitsSchema, withDefaultLimits } from './session-limits.ts';
import { workspaceOf } from './workspace.ts';

const { session: defaults } = DEFAULTS;

/** Fills in the limits that the policy has by default. */
function withLimitsOf({ type }: { type: PolicyName }, limits: z.infer<typeof limitsSchema>) {
  // A host without control groups cannot enforce all limits, and refuses the limits that it cannot enforce.
  if (type !== 'docker' && type !== 'kubernetes') return limits;
  // Only the kubelet bounds the processes of a Pod, for all Pods of a node alike.
  return type === 'docker' ? withDefaultLimits(limits) : { ...withDefaultLimits(limits), pids: limits.pids };
}

/** Rejects a name in `env` and `secrets`: the order of exports would decide whether its value is a secret. */
function refuseDoubles({ env, secrets }: { env: object; secrets: object }, context: z.RefinementCtx): void {
  for (const name of Object.keys(secrets).filter((secret) => Object.hasOwn(env, secret)))
    context.addIssue({ code: 'custom', path: ['secrets', name], message: 'is in env as well' });
}

/** Refuses what no cluster gives a Pod: a directory of a host, and a uid that is or may be 0. */
function refuseInPod(
  { user, workspace, cwd, keepOnFailure }: z.output<typeof sessionFieldsSchema>,
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
export const sessionSpecSchema = sessionFieldsSchema
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
  })
  .meta({
    id: 'SessionSpec',
    description: 'How a session is set up. `undefined` is the same as absent, and unknown fields are rejected.',
  });
export type ResolvedSessionSpec = z.infer<typeof sessionSpecSchema>;

/** Returns the lowest schema version that understands the spec. */
export function specSchema({ sandbox, approval, execPolicy, keepOnFailure, near, hosts }: ResolvedSessionSpec): number {
  const newer = [sandbox, approval, execPolicy, keepOnFailure || undefined, near];
  return newer.some((field) => field !== undefined) || Object.keys(hosts).length > 0 ? 2 : 1;
}

/** Reason of the event `session.closed` of a driven session that nobody closed. */
export const DRIVER_GONE = 'its driver is gone';
