import {
  labelsSchema,
  POLICY_NAMES,
  type PolicyName,
  prioritySchema,
  type ResolvedSessionSpec,
} from '@shellfleet/protocol';
import { z } from 'zod';

/**
 * The parts of a session's spec that decide where and when it runs. They are stored in clear, in its job and in its state, because routing
 * must not need the seal key. The sealed spec remains the authority: a host refuses a session whose clear copy differs from it.
 */
export const placementSchema = z.strictObject({
  policy: z.enum(POLICY_NAMES),
  priority: prioritySchema,
  labels: labelsSchema,
});
export type Placement = z.infer<typeof placementSchema>;

export function toPlacement({ policy, priority, labels }: ResolvedSessionSpec): Placement {
  return { policy: policy.type, priority, labels };
}

/** Sessions of one class can run on the same hosts, so they wait in one queue. */
export type PlacementClass = PolicyName;

export const PLACEMENT_CLASSES: readonly PlacementClass[] = POLICY_NAMES;

/** The only place that decides which queue a session waits in. For now the class is the execution policy. */
export function placementClass({ policy }: Pick<Placement, 'policy'>): PlacementClass {
  return policy;
}

/** The classes that a host offers. `policies` may come from another process; names that do not exist are left out. */
export function offeredClasses(policies: readonly string[]): PlacementClass[] {
  return PLACEMENT_CLASSES.filter((name) => policies.includes(name));
}

/** Reads the copy of a placement in a session's state; undefined when it is not valid. */
export function parsePlacement(json: string): Placement | undefined {
  try {
    return placementSchema.safeParse(JSON.parse(json)).data;
  } catch {
    return undefined;
  }
}
