import type { KeyObject } from 'node:crypto';
import type { Duplex } from 'node:stream';
import type { Examination } from '@shellfleet/keeper';
import type { SandboxAllowances } from '@shellfleet/policy';
import type { HostImage, HostOffer, ResolvedSessionSpec, RunningPull } from '@shellfleet/protocol';
import type { SandboxUse } from '../host/tenant-use.ts';

// The environment of a shell. It outlives the worker, so the data for finding a sandbox is stored with it.
//
// SANDBOX-1. A sandbox is hardened exactly as its policy's plan requires, or it is not created.
// SANDBOX-2. No label, name or argument of a sandbox contains a secret or a script.
// SANDBOX-3. The end of a started sandbox is reported with its reason within 2 s: see `died`.
// SANDBOX-4. A second sandbox of a session has the files of the first, compared by their directory's identity, or it is
//     not started. Its purpose is stored with it, so that no worker takes it for the session's first.

export interface SessionRef {
  /** Keyspace of the fleet. */
  namespace: string;
  tenant: string;
  session: string;
}

/** How frames travel: by a unix socket of the worker, or by the engine's attach where no directory can be shared. */
export type SandboxTransport = 'socket' | 'attach';

/**
 * How to reach the keeper. With `tcp` it listens at the sandbox's address, and any worker of the fleet can dial it.
 * Chosen when the sandbox is created, and never changed.
 */
export type KeeperLink =
  | { type: 'socket'; path: string; token: string }
  | {
      type: 'attach';
      token: string;
      syncWord: string;
      /** True when the keeper can be reached only after its start. Its first messages wait until then. */
      opensAfterStart?: boolean;
      open(): Promise<Duplex>;
    }
  | {
      type: 'tcp';
      /** Token of every keeper that listens: the connection itself proves what it is. */
      token: string;
      /** Waits until the sandbox has an address, and returns it. */
      address(signal: AbortSignal): Promise<{ host: string; port: number }>;
      /** X25519 key of the fleet whose public half the keeper has. */
      privateKey: KeyObject;
      /** Secret of the keeper and the fleet: 32 bytes. */
      psk: Buffer;
    };

export interface SandboxImage {
  /** Requested name of the image. */
  name: string;
  /** `sha256:…`, the digest of the image's configuration, which names every layer by its digest. */
  digest: string;
}

export interface SandboxDeath {
  /**
   * Reason of the end. `exited`: the keeper ended. `disk`: this host ended a sandbox that filled the disk. `oom`: the
   * sandbox reached its limit of memory. `host-memory`: the kernel killed it for the memory of the whole host.
   */
  reason: 'oom' | 'host-memory' | 'disk' | 'removed' | 'killed' | 'exited';
  exitCode: number | null;
  /** Words of whatever ended it, for the message about the loss. */
  detail?: string;
}

/** A sandbox that may have no session yet. */
export interface UnassignedSandbox {
  readonly id: string;
  readonly containerId?: string;
  /** Image of the container: the requested name, and the digest. */
  readonly image?: SandboxImage;
  /** Kind and name, for messages. */
  readonly description: string;
  /** Creation time in ms, by the clock of this host. */
  readonly createdAt: number;
  /** KEEPER_PROTOCOL_VERSION of the worker that created the sandbox, and so of its keeper. Compared on adoption. */
  readonly keeperProtocol: number;
  readonly link: KeeperLink;
  /** Path of the unix socket where the sandbox expects its network proxy, if a socket can be shared with it. */
  readonly egressPath?: string;
  /** Resolves when the sandbox has ended, for any reason. Never rejects. */
  readonly died: Promise<SandboxDeath>;
  /** Measures what the sandbox uses. Absent where nothing can be measured. */
  use?(): Promise<SandboxUse>;
  /**
   * Starts the keeper, which connects at once, so listen or attach before. The keeper may connect before this resolves.
   * Not called for adopted sandboxes.
   */
  start(): Promise<void>;
  /** Returns what the start waits for, in the words of the cluster; undefined if there are none. */
  waitsFor?(): string | undefined;
  /**
   * Called when the keeper of a started sandbox was claimed, before anything runs there. `examine` asks the keeper
   * what the kernel enforces, and which addresses it reaches. Throws SANDBOX_UNAVAILABLE if that is less than the
   * plan. Absent where the program that makes the sandbox enforces the plan or fails.
   */
  prove?(examine: (probes: readonly string[]) => Promise<Examination>): Promise<void>;
  /** Ends the sandbox and removes all its parts from this host. Does nothing when it is gone. */
  remove(): Promise<void>;
  /**
   * Ends all processes and keeps the files for a post-mortem. Returns false if there is nothing to keep: then it
   * removes the sandbox. Absent where nothing can be kept.
   */
  keep?(): Promise<boolean>;
}

export interface Sandbox extends UnassignedSandbox {
  readonly session: SessionRef;
  /**
   * How the sandbox is about to end: it finishes what runs, if that ends in time, and must begin nothing. Absent
   * otherwise.
   */
  readonly ending?: SandboxDeath | undefined;
  /** Name of the cluster's node on which the sandbox runs. Absent without a cluster, and before it runs. */
  readonly node?: string | undefined;
}

/** A sandbox that was created before anybody asked for it. */
export interface SpareSandbox extends UnassignedSandbox {
  /** Digest of everything that cannot change after the creation. Sessions with the same digest can have the sandbox. */
  readonly key: string;
  /**
   * Records on the disk of this host, once and for good, that the sandbox is the session's. From then on `list` finds
   * it as that session's.
   */
  assign(session: SessionRef): Promise<Sandbox>;
}

/** Container of this host that is kept for a post-mortem. It is stopped and cannot start again. */
export interface KeptContainer {
  session: SessionRef;
  sandbox: string;
  containerId: string;
  /** Time in ms, by the clock of this host. */
  keptAt: number;
}

/** A sandbox of an earlier process of this host, and its state when it was found. */
export type FoundSandbox =
  /** A sandbox of a session. `created` means that it was never started, `beside` that it is the session's second. */
  | { sandbox: Sandbox; state: 'created' | 'running' | 'dead' | 'beside' }
  /** The sandbox was never given to a session. */
  | { sandbox: UnassignedSandbox; state: 'spare' };

/** Thrown by `create` for an image that this host lacks. After `pull`, `create` is called again. */
export class MissingImage extends Error {
  readonly image: string;

  constructor(image: string) {
    super(`the image ${image} is not on this host`);
    this.image = image;
  }
}

export interface CreateOptions {
  signal?: AbortSignal;
  /** Image of the session's last sandbox, used again if the host has it and the spec asks for the same name. */
  image?: SandboxImage | undefined;
  /** Set for a second sandbox, in which commands run that leave the first. */
  beside?: Beside;
}

/**
 * The `key` of the spare sandboxes that a session can have, or the field of its spec for which it needs a sandbox that
 * is created for it alone.
 */
export type SpareKey = { key: string } | { needsOwn: 'workspace' | 'user' | 'network' };

/** Creates sandboxes before their session is known. */
export interface SpareSandboxes {
  /** Returns the key for a session. Throws what `create` would throw. `image`: see CreateOptions. */
  keyOf(spec: ResolvedSessionSpec, image?: SandboxImage): Promise<SpareKey>;
  /** Creates a sandbox, not started, for sessions with the limits, image and network of this spec. */
  create(spec: ResolvedSessionSpec): Promise<SpareSandbox>;
}

/** What a second sandbox of a session shares with the first. */
export interface Beside {
  /** Id of the session's first sandbox, which is running. */
  sandboxId: string;
  /** What the second sandbox's spec may ask for at most. */
  allowances: SandboxAllowances;
}

/** Whether control groups limit sessions without a container, and the engine limits the disk of containers. */
export type HostLimits = Partial<Pick<HostOffer, 'controlGroups' | 'diskQuota'>>;

/** The images of a host with containers. */
export interface SandboxImages {
  /** Marks of the images that this host has, as of the last time it looked. */
  readonly marks: readonly string[];
  /** Returns the mark of an image that a spec names: a short hash of its whole name. */
  markOf(image: string): string;
  /** Returns the running pulls. */
  running(): RunningPull[];
  /** Returns why images that the host pulls in advance are missing, one sentence each. */
  warnings(): string[];
  progressOf(image: string): RunningPull | undefined;
  /** Pulls an image that sessions may name. Returns its digest. Throws IMAGE_UNAVAILABLE. */
  fetch(image: string): Promise<string>;
  /** Lists the images that sessions may name. */
  list(): Promise<HostImage[]>;
  /** Begins to pull what the host keeps in advance, and removes what is over its budget. Never rejects. */
  tend(): Promise<void>;
  /** Removes what the host pulled, and what is neither in use nor pinned. Returns what it removed, or would remove. */
  prune(options: { dryRun: boolean }): Promise<HostImage[]>;
}

/** Returns the host of a session, '' without one, and its last sandbox; undefined if nothing is known of it. */
export type OwnerOf = (session: SessionRef) => Promise<{ host: string; sandboxId: string } | 'closed' | undefined>;

/** Creates and finds the sandboxes of one or several policies on this host. */
export interface Sandboxes {
  /** Checks the spec against the operator's settings and creates the sandbox, not started. Throws MissingImage. */
  create(session: SessionRef, spec: ResolvedSessionSpec, options?: CreateOptions): Promise<Sandbox>;
  /** Lists this host's sandboxes in its namespace, for adoption and removal after a restart. */
  list(): Promise<FoundSandbox[]>;
  /**
   * Finds a sandbox of a session, whichever worker created it. Undefined when it is gone. Absent where no worker
   * reaches the sandboxes of another.
   */
  find?(session: SessionRef, sandboxId: string): Promise<FoundSandbox | undefined>;
  /** Checks that this host can run the policies. Throws DOCKER_UNAVAILABLE, SANDBOX_UNAVAILABLE. */
  check(): Promise<void>;
  limits?(): Promise<HostLimits>;
  /** Returns the listed container runtimes that the host lacked at its last check. Default: none. */
  missingRuntimes?(): string[];
  /** Fetches an image of a checked spec. Takes minutes, so no opening limit applies. Throws IMAGE_UNAVAILABLE. */
  pull(image: string, signal?: AbortSignal): Promise<void>;
  /** Images of the host. Absent where sessions have no containers. */
  readonly images?: SandboxImages | undefined;
  /** Absent where no sandbox can be created before its session is known. */
  readonly spares?: SpareSandboxes | undefined;
  /** Returns the ids of the namespace's other fleets with sandboxes here; '' for versions without fleet ids. */
  otherFleets?(): Promise<string[]>;
  /** Sets whether tenants have quotas of disk, for which sandboxes are measured more often. */
  setDiskQuotas?(hasQuotas: boolean): void;
  /** Returns why no sandbox can be created at present, as a sentence; undefined when one can. */
  problem(): string | undefined;
  /**
   * Removes sandboxes of this host without a session here, and sandboxes of hosts that are gone. Returns how many.
   * `ownerOf` is for sandboxes that belong to no host. It is removed once nobody has had it for `goneMs`.
   */
  sweep(isGone: (hostId: string) => Promise<boolean>, ownerOf: OwnerOf, goneMs: number): Promise<number>;
  /** Removes what exceeds the bounds, and returns the containers that stay kept for a post-mortem. */
  listKept?(): Promise<KeptContainer[]>;
  removeKept?(session: SessionRef): Promise<void>;
  close(): Promise<void>;
}
