import {
  type HostBeat,
  labelsSchema,
  POLICY_NAMES,
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
  /** `<schema>.<key id>`: the schema version that understands the sealed spec, and the key that opens it; empty when neither is known. */
  sealedWith: z
    .string()
    .regex(/^(?:[0-9]{1,6}\.[A-Za-z0-9_-]{1,32})?$/)
    .default(''),
});
export type Placement = z.infer<typeof placementSchema>;

/** `sealedWith`: of the sealed spec (sealMarkOf). */
export function toPlacement({ policy, priority, labels }: ResolvedSessionSpec, sealedWith = ''): Placement {
  return { policy: policy.type, priority, labels, sealedWith };
}

/**
 * Sessions of one class can run on the same hosts, so they wait in one queue: `<policy>~<schema>.<key id>`. So a host never fetches a session
 * whose spec it cannot open, and a session never waits behind one that no host can open.
 */
export type PlacementClass = string;

const CLASS_PATTERN = /^([a-z]{1,32})(?:~([0-9]{1,6})\.([A-Za-z0-9_-]{1,32}))?$/;

/** The only place that decides which queue a session waits in. */
export function placementClass({ policy, sealedWith }: Pick<Placement, 'policy' | 'sealedWith'>): PlacementClass {
  return sealedWith === '' ? policy : `${policy}~${sealedWith}`;
}

/** The parts of a class; undefined when the name is not one of a class. */
export function parseClass(name: string): { policy: string; schema: number; keyId: string } | undefined {
  const match = CLASS_PATTERN.exec(name);
  if (match === null) return undefined;
  const [, policy = '', schema = '0', keyId = ''] = match;
  return { policy, schema: Number(schema), keyId };
}

/** The part of a heartbeat that decides which sessions a host can run. */
export type Abilities = Pick<HostBeat, 'policies' | 'sealKeys' | 'schema'>;

/** The classes that a host offers. Its policies may come from another process; names that do not exist are left out. */
export function offeredClasses({ policies, sealKeys, schema }: Abilities): PlacementClass[] {
  const schemas = Array.from({ length: schema }, (_, index) => index + 1);
  const marks = sealKeys.flatMap((keyId) => schemas.map((version) => `${version}.${keyId}`));
  return POLICY_NAMES.filter((policy) => policies.includes(policy)).flatMap((policy) =>
    marks.map((sealedWith) => placementClass({ policy, sealedWith })),
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
