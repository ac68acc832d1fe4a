import { type HostAllowances, type HostPolicyPlan, planHost } from '@shellfleet/policy';
import type { PolicyName, ResolvedSessionSpec } from '@shellfleet/protocol';

/**
 * Program that confines the keeper further. It starts last, inside the root directory that the policy `host` builds.
 */
export interface Enclosure {
  policy: PolicyName;
  /** Returns the plan, and the command line of the enclosure. Throws SANDBOX_UNAVAILABLE with its refusals. */
  plan(spec: ResolvedSessionSpec, allowances: HostAllowances): { plan: HostPolicyPlan; program: string[] };
  /** File that the launcher opens for the program. */
  descriptor?: string;
  /** True when nothing in the enclosure can open a socket, so the launcher connects the keeper. */
  isRelayed?: boolean;
  /** Directory of the keeper's files. Default: that of the policy `host`. */
  runDirectory?: string;
  env?: Record<string, string>;
  /** Shell commands that test the enclosure from inside. On a failure, they `exit` with a number from `problems`. */
  trial?: { script: string; problems: Record<number, string> };
}

/** No additional enclosure: the policy `host`. */
export const noEnclosure: Enclosure = {
  policy: 'host',
  plan: (spec, allowances) => ({ plan: planHost(spec, allowances), program: [] }),
};
