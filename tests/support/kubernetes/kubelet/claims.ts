import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeObject, Store } from '../api-server/store.ts';
import type { Pod } from './pod-status.ts';

interface ClaimSpec {
  storageClassName?: string;
  accessModes?: string[];
  resources?: { requests?: { storage?: string } };
}

/** Provides volumes for claims: directories of this machine, once a Pod of the claim has a node. */
export class Claims {
  /** Storage classes. The first is the default. All wait for the first consumer. */
  readonly storageClasses = new Set(['standard']);
  readonly #store: Store;
  readonly #directory: string;

  constructor(store: Store, directory: string) {
    this.#store = store;
    this.#directory = directory;
    store.subscribe(({ type, resource, object }) => {
      if (resource === 'persistentvolumeclaims' && type === 'DELETED') void this.#discard(object);
      if (resource === 'pods' && type === 'ADDED') this.#addEphemeral(object as Pod);
    });
  }

  /** Returns why the claims of a Pod keep it from every node, or undefined if they do not. */
  refusal(pod: Pod): string | undefined {
    for (const name of claimsOf(pod).values()) {
      const claim = this.#store.get('persistentvolumeclaims', pod.metadata.namespace, name);
      if (!claim) return `persistentvolumeclaim "${name}" not found`;
      if (claim.metadata.deletionTimestamp !== undefined) return `persistentvolumeclaim "${name}" is being deleted`;
      if (!this.storageClasses.has(this.#classOf(claim))) return 'pod has unbound immediate PersistentVolumeClaims';
    }
    return undefined;
  }

  /** Binds the claims of a Pod. Returns the directories of its volumes. */
  async bind(pod: Pod): Promise<Map<string, string>> {
    const directories = new Map<string, string>();
    for (const [volume, name] of claimsOf(pod)) {
      const claim = this.#store.update('persistentvolumeclaims', pod.metadata.namespace, name, (before) => ({
        ...before,
        spec: { ...(before.spec as object), storageClassName: this.#classOf(before), volumeName: volumeOf(before) },
        status: {
          phase: 'Bound',
          accessModes: (before.spec as ClaimSpec).accessModes,
          capacity: (before.spec as ClaimSpec).resources?.requests,
        },
      }));
      if (!claim) throw new Error(`the claim ${name} is gone`);
      const path = this.#pathOf(claim);
      await mkdir(path, { recursive: true });
      directories.set(volume, path);
    }
    return directories;
  }

  #classOf({ spec }: KubeObject): string {
    return (spec as ClaimSpec).storageClassName ?? [...this.storageClasses][0] ?? '';
  }

  /** Makes the claims of ephemeral volumes, which the Pod owns. */
  #addEphemeral({ apiVersion, kind, metadata, spec }: Pod): void {
    for (const { name, ephemeral } of spec.volumes ?? []) {
      if (!ephemeral) continue;
      const owner = { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true };
      const { metadata: ofTemplate = {}, spec: ofClaim } = ephemeral.volumeClaimTemplate;
      this.#store.create('persistentvolumeclaims', {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: {
          name: `${metadata.name}-${name}`,
          namespace: metadata.namespace,
          ...(ofTemplate.labels && { labels: ofTemplate.labels }),
          ownerReferences: [{ ...owner, blockOwnerDeletion: true }],
          finalizers: ['kubernetes.io/pvc-protection'],
        },
        spec: ofClaim,
        status: { phase: 'Pending' },
      });
    }
  }

  #pathOf(claim: KubeObject): string {
    return join(this.#directory, volumeOf(claim));
  }

  async #discard(claim: KubeObject): Promise<void> {
    await rm(this.#pathOf(claim), { recursive: true, force: true });
  }
}

const volumeOf = ({ metadata }: KubeObject) => `pvc-${metadata.uid}`;

/** Returns the names of the claims of a Pod, by the names of its volumes. */
function claimsOf({ metadata, spec }: Pod): Map<string, string> {
  return new Map(
    (spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }): [string, string][] => {
      if (persistentVolumeClaim) return [[name, persistentVolumeClaim.claimName]];
      return ephemeral ? [[name, `${metadata.name}-${name}`]] : [];
    }),
  );
}
