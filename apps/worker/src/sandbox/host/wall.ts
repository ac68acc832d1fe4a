import { type HostAllowances, type HostPolicyPlan, planHost } from '@shellfleet/policy';
import type { PolicyName, ResolvedSessionSpec } from '@shellfleet/protocol';

/** A program between the host and the keeper, which confines what it starts. It starts after all that the host policy does, within its root folder. */
export interface Wall {
  policy: PolicyName;
  /** Throws SANDBOX_UNAVAILABLE with what it refuses. `program`: the wall with its arguments, before the program that it starts. */
  plan(spec: ResolvedSessionSpec, allowances: HostAllowances): { plan: HostPolicyPlan; program: string[] };
  /** A file that the program gets open, as the launcher does it. */
  descriptor?: string;
  /** Nothing behind it can open a socket, so the launcher connects the keeper. */
  isRelayed?: boolean;
  /** Where the keeper has its files. Default: the host policy's own folder. */
  runFolder?: string;
  env?: Record<string, string>;
  /** Shell commands that find out behind the wall whether it stands: `exit` with one of the numbers of `problems`. */
  trial?: { script: string; problems: Record<number, string> };
}

/** The host policy itself. */
export const noWall: Wall = {
  policy: 'host',
  plan: (spec, allowances) => ({ plan: planHost(spec, allowances), program: [] }),
};
