import {
  type HostBeat,
  labelsSchema,
  labelsText,
  NETWORK_ACCESSES,
  type NetworkAccess,
  neededLabelsSchema,
  POLICY_NAMES,
  type PolicyName,
  prioritySchema,
  type ResolvedSessionSpec,
  refusedByLists,
  refusedSandbox,
  SANDBOX_MODES,
  type SandboxMode,
  sandboxToList,
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
  priority: prioritySchema.default(0),
  labels: labelsSchema.default({}),
  /** Labels that the host must have. Absent without any. */
  hosts: neededLabelsSchema.optional(),
  /** Session on whose host this one would like to be. */
  near: sessionIdSchema.optional(),
  /** Sandbox mode that the operator of the host must list. */
  mode: z.enum(SANDBOX_MODES).optional(),
  /** Network that the operator of the host must list. */
  network: z.enum(NETWORK_ACCESSES).optional(),
  /** True when a host that offers policy, mode, network and labels may refuse the session. */
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
  const { policy, priority, labels, hosts, near } = spec;
  return {
    ...{ policy: policy.type, priority, labels },
    ...(Object.keys(hosts).length === 0 ? {} : { hosts }),
    ...(near === undefined ? {} : { near }),
    ...sandboxToList(spec),
    ...(isParticular(spec) ? ({ particular: true } as const) : {}),
    sealedWith,
  };
}

/**
 * Class of a session: `<policy>[+<mode>][+<network>][+particular][,<label>=<value>…]~<schema>.<key id>`, with mode and
 * network only if an operator must list them, and labels by their names. It has at most `LIMITS.placementClassChars`.
 * Each tenant has a queue for each class. A host asks in which classes sessions wait, reads the queues of those that it
 * offers, and takes every session from those without `+particular`.
 */
export type PlacementClass = string;

const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?';
const CLASS_PATTERN = new RegExp(
  `^([a-z]{1,32})((?:\\+[a-z-]{1,32}){0,3})((?:,${LABEL}=${LABEL}){0,8})(?:~([0-9]{1,6})\\.([A-Za-z0-9_-]{1,32}))?$`,
);

/** Parts of a placement that decide its class. */
type Classified = Pick<Placement, 'policy' | 'mode' | 'network' | 'particular' | 'hosts' | 'sealedWith'>;

/** Returns the class of a placement. No other code decides in which class a session waits. */
export function placementClass({ policy, mode, network, particular, hosts, sealedWith }: Classified): PlacementClass {
  const words = [policy, mode, network, particular && 'particular'].filter((word) => word !== undefined).join('+');
  const labels = labelsText(hosts ?? {}, ',');
  const name = labels === '' ? words : `${words},${labels}`;
  return sealedWith === '' ? name : `${name}~${sealedWith}`;
}

/** Parts of the name of a class. */
export interface ParsedClass {
  policy: string;
  /** Mode and network that a host must list. */
  mode: SandboxMode | undefined;
  network: NetworkAccess | undefined;
  particular: boolean;
  /** Labels that a host must have. */
  hosts: Readonly<Record<string, string>>;
  schema: number;
  keyId: string;
}

/** Returns the parts of a class, or undefined when the name is not one of a class. */
export function parseClass(name: string): ParsedClass | undefined {
  const match = CLASS_PATTERN.exec(name);
  if (match === null) return undefined;
  const [, policy = '', more = '', labels = '', schema = '0', keyId = ''] = match;
  const words = more.split('+').slice(1);
  const mode = SANDBOX_MODES.find((known) => words.includes(known));
  const network = NETWORK_ACCESSES.find((known) => words.includes(known));
  const particular = words.includes('particular');
  // A newer version may know more words.
  if ([mode, network, particular || undefined].filter(Boolean).length !== words.length) return undefined;
  const pairs = labels.split(',').slice(1);
  const hosts = Object.fromEntries(pairs.map((pair) => pair.split('=') as [string, string]));
  return { policy, mode, network, particular, hosts, schema: Number(schema), keyId };
}

/** The part of a heartbeat that decides which sessions a host can run. */
export type Abilities = Pick<HostBeat, 'policies' | 'sealKeys' | 'schema' | 'allow' | 'labels'>;

/** Tells whether a host offers a class. */
export function isOffered(name: PlacementClass, host: Abilities): boolean {
  const parsed = parseClass(name);
  return (
    parsed !== undefined &&
    host.policies.includes(parsed.policy) &&
    canOpen(parsed, host) &&
    missingLabels(parsed, host).length === 0 &&
    unlistedSandbox(parsed, host).length === 0
  );
}

/** Tells whether a host can open the sealed specs of a class. */
export const canOpen = ({ keyId, schema }: ParsedClass, host: Pick<Abilities, 'sealKeys' | 'schema'>): boolean =>
  host.sealKeys.includes(keyId) && schema >= 1 && schema <= host.schema;

/** Returns the labels of a class that a host has not: `name=value`. */
export const missingLabels = ({ hosts }: ParsedClass, { labels }: Pick<Abilities, 'labels'>): string[] =>
  Object.entries(hosts).flatMap(([name, value]) => (labels[name] === value ? [] : [`${name}=${value}`]));

/** Returns which of mode and network of a class the operator of a host has not listed. */
export function unlistedSandbox({ policy, mode, network }: ParsedClass, { allow }: Pick<Abilities, 'allow'>) {
  const known = POLICY_NAMES.find((one): one is PolicyName => one === policy);
  return known === undefined ? [] : refusedByLists(known, { mode, network }, allow);
}

/** Returns the classes without labels that a host offers. Policies that this version does not know are left out. */
export function offeredClasses(host: Abilities): PlacementClass[] {
  const schemas = Array.from({ length: host.schema }, (_, index) => index + 1);
  const marks = host.sealKeys.flatMap((keyId) => schemas.map((version) => `${version}.${keyId}`));
  return POLICY_NAMES.filter((policy) => host.policies.includes(policy)).flatMap((policy) =>
    listedSandboxes(policy, host).flatMap((sandbox) =>
      marks.flatMap((sealedWith) => [
        placementClass({ policy, ...sandbox, sealedWith }),
        placementClass({ policy, ...sandbox, particular: true, sealedWith }),
      ]),
    ),
  );
}

/** Returns the parts of classes that stand for the modes and networks that a host lists, and for none of them. */
function listedSandboxes(policy: PolicyName, { allow }: Abilities): Pick<Classified, 'mode' | 'network'>[] {
  const needsList = (asked: Pick<Classified, 'mode' | 'network'>) =>
    refusedByLists(policy, asked, { modes: [], networks: [] }).length > 0;
  const modes = SANDBOX_MODES.filter((mode) => allow.modes.includes(mode) && needsList({ mode }));
  const networks = NETWORK_ACCESSES.filter((network) => allow.networks.includes(network) && needsList({ network }));
  return [undefined, ...modes]
    .flatMap((mode) => [undefined, ...networks].map((network) => ({ mode, network })))
    .filter((sandbox) => refusedSandbox({ policy: { type: policy }, sandbox }).length === 0);
}

/** Returns the copy of a placement for a session's state. Redis keeps the state compact if the copy is short. */
export function toPlacementJson({ priority, labels, ...rest }: Placement): string {
  const hasLabels = Object.keys(labels).length > 0;
  return JSON.stringify({ ...rest, ...(priority !== 0 && { priority }), ...(hasLabels && { labels }) });
}

/** Parses the copy of a placement in a session's state. Returns undefined when it is not valid. */
export function parsePlacement(json: string): Placement | undefined {
  try {
    return placementSchema.safeParse(JSON.parse(json)).data;
  } catch {
    return undefined;
  }
}
