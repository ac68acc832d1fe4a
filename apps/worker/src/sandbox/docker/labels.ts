import { FLEET_ID_PATTERN, parseKeyspace, toKeyspace } from '@shellfleet/protocol';
import { z } from 'zod';
import type { SandboxTransport, SessionRef } from '../sandbox.ts';

// Labels of a sandbox's container: ids and no secret, because every user of the engine can read them.

const PREFIX = 'shellfleet.';

export interface SandboxLabels {
  /** Keyspace of the fleet. */
  namespace: string;
  /** Session for which the container was created. Absent for a container that gets its session later. */
  session?: SessionRef;
  hostId: string;
  sandboxId: string;
  transport: SandboxTransport;
  keeperProtocol: number;
  /** Requested name of the image. The container has it by digest. */
  image?: string;
  /** Uid of the session's processes, if each session has its own uid. */
  uid?: number;
  /** Id of the session's first sandbox, if this one is the second. */
  beside?: string;
}

const schema = z.object({
  namespace: z.string().min(1),
  fleet: z.string().regex(FLEET_ID_PATTERN),
  tenant: z.string().min(1).optional(),
  session: z.string().min(1).optional(),
  host: z.string().min(1),
  sandbox: z.string().regex(/^[0-9a-f]{12}$/),
  transport: z.enum(['socket', 'attach']),
  'keeper-protocol': z.string().regex(/^[0-9]{1,6}$/),
  image: z.string().min(1).optional(),
  uid: z
    .string()
    .regex(/^[0-9]{1,9}$/)
    .optional(),
  beside: z
    .string()
    .regex(/^[0-9a-f]{12}$/)
    .optional(),
});

export function toLabels(labels: SandboxLabels): Record<string, string> {
  const { session, hostId, sandboxId, transport, keeperProtocol, image, uid, beside } = labels;
  const { namespace, fleetId } = parseKeyspace(labels.namespace);
  const values = {
    ...{ namespace, fleet: fleetId },
    ...(session === undefined ? {} : { tenant: session.tenant, session: session.session }),
    ...{ host: hostId, sandbox: sandboxId, transport, 'keeper-protocol': String(keeperProtocol) },
    ...(image === undefined ? {} : { image }),
    ...(uid === undefined ? {} : { uid: String(uid) }),
    ...(beside === undefined ? {} : { beside }),
  };
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [PREFIX + name, value]));
}

/** Reads the labels of a container. Returns undefined if a label is missing, or invalid and so not set by a worker. */
export function parseLabels(labels: Record<string, string>): SandboxLabels | undefined {
  const prefixed = Object.entries(labels).filter(([name]) => name.startsWith(PREFIX));
  const values = schema.safeParse(
    Object.fromEntries(prefixed.map(([name, value]) => [name.slice(PREFIX.length), value])),
  ).data;
  if (!values) return undefined;
  const { tenant, session, host: hostId, sandbox: sandboxId, transport } = values;
  if ((tenant === undefined) !== (session === undefined)) return undefined;
  const namespace = toKeyspace(values.namespace, values.fleet);
  return {
    namespace,
    ...(tenant === undefined || session === undefined ? {} : { session: { namespace, tenant, session } }),
    hostId,
    sandboxId,
    transport,
    keeperProtocol: Number(values['keeper-protocol']),
    ...(values.image === undefined ? {} : { image: values.image }),
    ...(values.uid === undefined ? {} : { uid: Number(values.uid) }),
    ...(values.beside === undefined ? {} : { beside: values.beside }),
  };
}

/** Returns the fleet id; empty when a version without fleet ids created the container. */
export const fleetOf = (labels: Record<string, string>) => labels[`${PREFIX}fleet`] ?? '';

export const ofNamespace = (keyspace: string) => `${PREFIX}namespace=${parseKeyspace(keyspace).namespace}`;
export const ofFleet = (keyspace: string) => `${PREFIX}fleet=${parseKeyspace(keyspace).fleetId}`;
export const ofHost = (hostId: string) => `${PREFIX}host=${hostId}`;

/** Returns filters of the engine's list and events for the containers of one host. */
export function hostFilter(keyspace: string, hostId: string): string[] {
  return [ofNamespace(keyspace), ofFleet(keyspace), ofHost(hostId)];
}
