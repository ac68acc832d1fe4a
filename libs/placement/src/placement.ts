import {
  type HostBeat,
  labelsSchema,
  POLICY_NAMES,
  prioritySchema,
  type ResolvedSessionSpec,
  sessionIdSchema,
} from '@shellfleet/protocol';
import { z } from 'zod';
import { isParticular } from './particular.ts';

/**
 * The parts of a spec that decide where and when a session runs. They are stored in clear, since routing must not need
 * the seal key. A host refuses a session whose copy differs from its sealed spec.
 */
export const placementSchema = z.strictObject({
  policy: z.enum(POLICY_NAMES),
  priority: prioritySchema,
  labels: labelsSchema,
  /** Session on whose host this one would like to be. */
  near: sessionIdSchema.optional(),
  /** True when a host of the policy may refuse the session. */
  particular: z.literal(true).optional(),
  /** Schema version and key id that open the sealed spec: `<schema>.<key id>`. Empty when neither is known. */
  sealedWith: z
    .string()
    .regex(/^(?:[0-9]{1,6}\.[A-Za-z0-9_-]{1,32})?$/)
    .default(''),
});
export type Placement = z.infer<typeof placementSchema>;

/** Returns the placement of a spec. `sealedWith` comes from its sealed form (sealMarkOf). */
export function toPlacement(spec: ResolvedSessionSpec, sealedWith = ''): Placement {
  const { policy, priority, labels, near } = spec;
  const particular = isParticular(spec) ? ({ particular: true } as const) : {};
  return { policy: policy.type, priority, labels, ...(near === undefined ? {} : { near }), ...particular, sealedWith };
}

/**
 * Class of a session: `<policy>[+particular]~<schema>.<key id>`. Each tenant has a queue for each class. A host reads
 * the queues of specs that it can open, and takes every session from those without `+particular`.
 */
export type PlacementClass = string;

const CLASS_PATTERN = /^([a-z]{1,32})(\+particular)?(?:~([0-9]{1,6})\.([A-Za-z0-9_-]{1,32}))?$/;

/** Returns the class of a placement. No other code decides in which class a session waits. */
export function placementClass({
  policy,
  particular,
  sealedWith,
}: Pick<Placement, 'policy' | 'particular' | 'sealedWith'>): PlacementClass {
  const name = particular === true ? `${policy}+particular` : policy;
  return sealedWith === '' ? name : `${name}~${sealedWith}`;
}

/** Returns the parts of a class, or undefined when the name is not one of a class. */
export function parseClass(
  name: string,
): { policy: string; particular: boolean; schema: number; keyId: string } | undefined {
  const match = CLASS_PATTERN.exec(name);
  if (match === null) return undefined;
  const [, policy = '', particular = '', schema = '0', keyId = ''] = match;
  return { policy, particular: particular !== '', schema: Number(schema), keyId };
}

/** The part of a heartbeat that decides which sessions a host can run. */
export type Abilities = Pick<HostBeat, 'policies' | 'sealKeys' | 'schema'>;

/** Returns the classes that a host offers. Policies that this version does not know are left out. */
export function offeredClasses({ policies, sealKeys, schema }: Abilities): PlacementClass[] {
  const schemas = Array.from({ length: schema }, (_, index) => index + 1);
  const marks = sealKeys.flatMap((keyId) => schemas.map((version) => `${version}.${keyId}`));
  return POLICY_NAMES.filter((policy) => policies.includes(policy)).flatMap((policy) =>
    marks.flatMap((sealedWith) => [
      placementClass({ policy, sealedWith }),
      placementClass({ policy, particular: true, sealedWith }),
    ]),
  );
}

export function isOffered(name: PlacementClass, host: Abilities): boolean {
  return offeredClasses(host).includes(name);
}

/** Parses the copy of a placement in a session's state. Returns undefined when it is not valid. */
export function parsePlacement(json: string): Placement | undefined {
  try {
    return placementSchema.safeParse(JSON.parse(json)).data;
  } catch {
    return undefined;
  }
}
