import { createHash } from 'node:crypto';
import { KEEPER_PROTOCOL_VERSION } from '@shellfleet/keeper';
import {
  KEEPER_PROTOCOL_ANNOTATION,
  type KubernetesPlan,
  type PodLabels,
  type PodNames,
  toClaim,
  toPod,
  toPodLabels,
} from '@shellfleet/policy';
import { type LinkKeys, linkKeysOf, pskOf } from '@shellfleet/sealing';
import type { SessionRef } from '../sandbox.ts';
import type { FleetOwner } from './fleet-lease.ts';
import type { Pod } from './pod-schema.ts';

// Names, labels and keys of the Pods of a fleet. Whoever may read Pods reads all of them. With the preshared key they
// can pose as the keeper at its address (docs/security.md), but drive no shell: that takes the fleet's private key.

/** Name of a session, and the host that created its Pod: for the sweep, as labels are hashes. */
const SESSION_ANNOTATION = 'shellfleet.dev/session-of';
const HOST_ANNOTATION = 'shellfleet.dev/created-by';
/** Time at which a Pod of a pool got its session. */
const ASSIGNED_ANNOTATION = 'shellfleet.dev/assigned-at';

/** The link keys of a seal key, which are derived once. */
interface FleetKey extends LinkKeys {
  sealKey: string;
}

export interface PodKeys {
  privateKey: FleetKey['privateKey'];
  psk: Buffer;
}

export class PodIdentity {
  readonly #keys: readonly FleetKey[];
  readonly #fleetId: string;
  readonly #hostId: string;
  /** Namespace of the cluster in which the Pods are. */
  readonly #namespace: string;

  /** The first seal key makes new Pods. */
  constructor(options: { sealKeys: readonly string[]; fleetId: string; hostId: string; namespace: string }) {
    this.#keys = options.sealKeys.map((sealKey) => ({ ...linkKeysOf(sealKey), sealKey }));
    this.#fleetId = options.fleetId;
    this.#hostId = options.hostId;
    this.#namespace = options.namespace;
  }

  /** Returns what a new Pod has beside its plan, and the keys with which it is dialled. */
  name(
    sandboxId: string,
    { session, pool }: { session?: SessionRef | undefined; pool?: string | undefined },
    owner: FleetOwner,
  ): { names: PodNames; keys: PodKeys } {
    const [key] = this.#keys;
    if (key === undefined) throw new Error('a fleet has no seal key');
    const name = toPodName(sandboxId);
    const { privateKey, psk } = this.#keysFor(key, name);
    const labels: PodLabels = { fleet: this.#fleetId, key: key.id, pool, ...(session && sessionLabels(session)) };
    const [linkKey, linkPsk] = [Buffer.from(key.publicKey).toString('hex'), psk.toString('hex')];
    const names = { name, labels, keeperProtocol: KEEPER_PROTOCOL_VERSION, owner, linkKey, linkPsk };
    return { names, keys: { privateKey, psk } };
  }

  /** Returns the annotations of a new Pod that tell whose it is. Without a session it is of a pool. */
  annotationsOf(session: SessionRef | undefined): Record<string, string> {
    return { [HOST_ANNOTATION]: this.#hostId, ...(session && annotationOf(session)) };
  }

  /** Returns the keys with which a Pod is dialled. Undefined when this worker has not the seal key that made it. */
  keysOf({ metadata: { name, labels } }: Pod): PodKeys | undefined {
    const [[label] = []] = Object.entries(toPodLabels({ key: '' }));
    const key = this.#keys.find(({ id }) => id === labels[label ?? '']);
    return key && this.#keysFor(key, name);
  }

  #keysFor({ privateKey, sealKey }: FleetKey, name: string): PodKeys {
    return { privateKey, psk: pskOf(sealKey, this.#namespace, name) };
  }
}

/** Returns what a Pod of a pool has beside its own labels and annotations when it gets its session. */
export function toAssignment(session: SessionRef, assignedAt: number) {
  const annotations = { ...annotationOf(session), [ASSIGNED_ANNOTATION]: new Date(assignedAt).toISOString() };
  return { labels: toPodLabels(sessionLabels(session)), annotations };
}

/**
 * Returns a hash of everything in which the Pod of a plan can differ from that of another session, so of all but who it
 * is and when the kubelet ends it. A bound on processes is no field of a Pod, but its keeper proves it.
 */
export function toPoolKey(plan: KubernetesPlan): string {
  const nobody = { name: '', labels: { fleet: '', key: '' }, keeperProtocol: 0, linkKey: '', linkPsk: '' };
  const pod = toPod({ ...plan, deadlineMs: 0 }, { ...nobody, owner: { name: '', uid: '' } });
  return hash(JSON.stringify([pod, toClaim(plan, { ...nobody, owner: { name: '', uid: '' } }), plan.limits.pids]));
}

/** Returns the time at which the sandbox of a session began: its creation, or when the session got it from a pool. */
export const beginOf = ({ metadata }: Pod): number =>
  Date.parse(metadata.annotations[ASSIGNED_ANNOTATION] ?? metadata.creationTimestamp);

export const toPodName = (sandboxId: string) => `sf-${sandboxId}`;

export const isOfSession = ({ metadata: { labels } }: Pod, session: SessionRef): boolean =>
  Object.entries(toPodLabels(sessionLabels(session))).every(([name, value]) => labels[name] === value);

/** Returns the session of a Pod, which its labels must confirm. */
export function sessionOf(pod: Pod, namespace: string): SessionRef | undefined {
  const [tenant = '', session = ''] = (pod.metadata.annotations[SESSION_ANNOTATION] ?? '').split(':');
  const ref = { namespace, tenant, session };
  return isOfSession(pod, ref) ? ref : undefined;
}

export const creatorOf = ({ metadata }: Pod): string => metadata.annotations[HOST_ANNOTATION] ?? '';

/** Returns the protocol version of the keeper in a Pod; 0 if it names none. */
export const keeperProtocolOf = ({ metadata }: Pod): number =>
  Number(metadata.annotations[KEEPER_PROTOCOL_ANNOTATION] ?? 0) || 0;

const annotationOf = ({ tenant, session }: SessionRef) => ({ [SESSION_ANNOTATION]: `${tenant}:${session}` });

const sessionLabels = ({ tenant, session }: SessionRef) => ({
  tenant: hash(tenant),
  session: hash(`${tenant}\0${session}`),
});

const hash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16);
