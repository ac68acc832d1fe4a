import {
  type HostBeat,
  labelsSchema,
  POLICY_NAMES,
  prioritySchema,
  type ResolvedSessionSpec,
} from '@shellfleet/protocol';
import { z } from 'zod';
import { offeredWants, wantsOf } from './wants.ts';

/** What a session asks for that only some operators allow (`wantsOf`), each `mode-…`, `network-…` or `runtime-…`. */
const wantsSchema = z.array(z.string().regex(/^(?:mode|network|runtime)-[A-Za-z0-9._-]{1,64}$/)).max(3);

/**
 * The parts of a session's spec that decide where and when it runs. They are stored in clear, in its job and in its state, because routing
 * must not need the seal key. The sealed spec remains the authority: a host refuses a session whose clear copy differs from it.
 */
export const placementSchema = z.strictObject({
  policy: z.enum(POLICY_NAMES),
  priority: prioritySchema,
  labels: labelsSchema,
  /** Absent: nothing that every host does not serve. */
  wants: wantsSchema.optional(),
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
  const wants = wantsOf(spec);
  return { policy: policy.type, priority, labels, ...(wants.length === 0 ? {} : { wants }), sealedWith };
}

/**
 * Sessions of one class can run on the same hosts, so they wait in one queue: `<policy>[+<want>…]~<schema>.<key id>`. So a host never fetches a
 * session whose spec it cannot open or whose sandbox its operator does not allow, and a session never waits behind one that no host can run.
 */
export type PlacementClass = string;

const CLASS_PATTERN = /^([a-z]{1,32})((?:\+[A-Za-z0-9._-]{1,72}){0,3})(?:~([0-9]{1,6})\.([A-Za-z0-9_-]{1,32}))?$/;

/** The only place that decides which queue a session waits in. */
export function placementClass({
  policy,
  wants = [],
  sealedWith,
}: Pick<Placement, 'policy' | 'wants' | 'sealedWith'>): PlacementClass {
  const sandbox = [policy, ...wants].join('+');
  return sealedWith === '' ? sandbox : `${sandbox}~${sealedWith}`;
}

/** The parts of a class; undefined when the name is not one of a class. */
export function parseClass(
  name: string,
): { policy: string; wants: string[]; schema: number; keyId: string } | undefined {
  const match = CLASS_PATTERN.exec(name);
  if (match === null) return undefined;
  const [, policy = '', wants = '', schema = '0', keyId = ''] = match;
  return { policy, wants: wants.split('+').slice(1), schema: Number(schema), keyId };
}

/** The part of a heartbeat that decides which sessions a host can run. */
export type Abilities = Pick<HostBeat, 'policies' | 'sealKeys' | 'schema' | 'allow'>;

/** The classes that a host offers. Its policies may come from another process; names that do not exist are left out. */
export function offeredClasses({ policies, sealKeys, schema, allow }: Abilities): PlacementClass[] {
  const schemas = Array.from({ length: schema }, (_, index) => index + 1);
  const marks = sealKeys.flatMap((keyId) => schemas.map((version) => `${version}.${keyId}`));
  return POLICY_NAMES.filter((policy) => policies.includes(policy)).flatMap((policy) =>
    offeredWants(policy, allow).flatMap((wants) =>
      marks.map((sealedWith) => placementClass({ policy, wants, sealedWith })),
    ),
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
