import {
  type HostBeat,
  labelsSchema,
  POLICY_NAMES,
  prioritySchema,
  type ResolvedSessionSpec,
} from '@shellfleet/protocol';
import { z } from 'zod';
import { isParticular } from './particular.ts';

/**
 * The parts of a session's spec that decide where and when it runs. They are stored in clear, in its job and in its state, because routing
 * must not need the seal key. The sealed spec remains the authority: a host refuses a session whose clear copy differs from it.
 */
export const placementSchema = z.strictObject({
  policy: z.enum(POLICY_NAMES),
  priority: prioritySchema,
  labels: labelsSchema,
  /** True when the session asks for something that a host of its policy may refuse. Absent: every host of the policy serves it. */
  particular: z.literal(true).optional(),
  /** `<schema>.<key id>`: the schema version that understands the sealed spec, and the key that opens it; empty when neither is known. */
  sealedWith: z
    .string()
    .regex(/^(?:[0-9]{1,6}\.[A-Za-z0-9_-]{1,32})?$/)
    .default(''),
});
export type Placement = z.infer<typeof placementSchema>;

/** `sealedWith`: of the sealed spec (sealMarkOf). */
export function toPlacement(spec: ResolvedSessionSpec, sealedWith = ''): Placement {
  const { policy, priority, labels } = spec;
  const particular = isParticular(spec) ? ({ particular: true } as const) : {};
  return { policy: policy.type, priority, labels, ...particular, sealedWith };
}

/**
 * Sessions of one class wait in one queue: `<policy>[+particular]~<schema>.<key id>`. A host never fetches a session whose spec it cannot open. Those that
 * are not particular run on every host of the class; of the others, a host takes those that it can run.
 */
export type PlacementClass = string;

const CLASS_PATTERN = /^([a-z]{1,32})(\+particular)?(?:~([0-9]{1,6})\.([A-Za-z0-9_-]{1,32}))?$/;

/** The only place that decides which queue a session waits in. */
export function placementClass({
  policy,
  particular,
  sealedWith,
}: Pick<Placement, 'policy' | 'particular' | 'sealedWith'>): PlacementClass {
  const name = particular === true ? `${policy}+particular` : policy;
  return sealedWith === '' ? name : `${name}~${sealedWith}`;
}

/** The parts of a class; undefined when the name is not one of a class. */
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

/** The classes that a host offers. Its policies may come from another process; names that do not exist are left out. */
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

/** Reads the copy of a placement in a session's state; undefined when it is not valid. */
export function parsePlacement(json: string): Placement | undefined {
  try {
    return placementSchema.safeParse(JSON.parse(json)).data;
  } catch {
    return undefined;
  }
}
