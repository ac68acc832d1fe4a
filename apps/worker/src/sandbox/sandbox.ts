import type { Duplex } from 'node:stream';
import type { SandboxAllowances } from '@shellfleet/policy';
import type { HostOffer, ResolvedSessionSpec } from '@shellfleet/protocol';

// The environment of a shell. A sandbox outlives the worker, so the data for finding it again is stored with the
// sandbox itself.
//
// SANDBOX-1. A sandbox is hardened exactly as its policy's plan requires, or it is not created.
// SANDBOX-2. No label, name or argument of a sandbox contains a secret or a script.
// SANDBOX-3. The end of a started sandbox is reported with its reason within 2 s: see `died`.
// SANDBOX-4. A sandbox beside that of a session has the session's files, by the identity of their folder, or it is not
//            started. What it is for is stored with it, so that no worker takes it for the session's own.

export interface SessionRef {
  /** The keyspace of the fleet. */
  namespace: string;
  tenant: string;
  session: string;
}

/**
 * How frames travel. Over `socket` the keeper connects to a unix socket of the worker; over `attach` they use the
 * engine's attach, where no directory can be shared.
 */
export type SandboxTransport = 'socket' | 'attach';

/** How to reach the keeper. Chosen when the sandbox is created, and never changed. */
export type KeeperLink =
  | { type: 'socket'; path: string; token: string }
  | {
      type: 'attach';
      token: string;
      syncWord: string;
      /** True when the keeper can be reached only after its start. It keeps its first messages until then. */
      opensAfterStart?: boolean;
      open(): Promise<Duplex>;
    };

export interface SandboxImage {
  /** The name by which the image was asked for. */
  name: string;
  /** `sha256:…`, the digest of its configuration, which names every layer by its digest. */
  digest: string;
}

export interface SandboxDeath {
  /**
   * Why the sandbox ended. `exited` means that the keeper ended itself, `disk` that this host ended it for filling the
   * disk.
   */
  reason: 'oom' | 'disk' | 'removed' | 'killed' | 'exited';
  exitCode: number | null;
}

export interface Sandbox {
  readonly id: string;
  readonly session: SessionRef;
  /** When it is a container of an engine. */
  readonly containerId?: string;
  /** That of the container, by the name that was asked for, and by its digest. */
  readonly image?: SandboxImage;
  /** Kind and name, for messages. */
  readonly description: string;
  /** In ms, by the clock of this host. */
  readonly createdAt: number;
  /** KEEPER_PROTOCOL_VERSION of the worker that created it, and so of its keeper. Compared on adoption. */
  readonly keeperProtocol: number;
  readonly link: KeeperLink;
  /** Path of the unix socket where the sandbox expects the proxy of its network, if a socket can be shared with it. */
  readonly egressPath?: string;
  /** Resolves when the sandbox has ended, for any reason. Never rejects. */
  readonly died: Promise<SandboxDeath>;
  /** Starts the keeper, which connects at once: listen, or attach, before. Not for adopted sandboxes. */
  start(): Promise<void>;
  /** Ends the sandbox and removes everything that belongs to it from this host. Does nothing when it is gone. */
  remove(): Promise<void>;
  /**
   * In place of `remove`: ends everything that runs in it, and keeps its files for a post-mortem, within the host's
   * bounds. False when there is nothing to keep: then it is removed. Absent where it cannot be kept.
   */
  keep?(): Promise<boolean>;
}

/** A container of this host that is kept for a post-mortem. It is stopped, and cannot be started again. */
export interface KeptContainer {
  session: SessionRef;
  /** Id of the sandbox that it was. */
  sandbox: string;
  containerId: string;
  /** In ms, by the clock of this host. */
  keptAt: number;
}

export interface FoundSandbox {
  sandbox: Sandbox;
  /**
   * State of the sandbox. `created` was never started. `beside` is a second one of a session. Their workers have died.
   */
  state: 'created' | 'running' | 'dead' | 'beside';
}

/** Thrown by `create` for an image that this host does not have: `pull` fetches it, then `create` is called again. */
export class MissingImage extends Error {
  readonly image: string;

  constructor(image: string) {
    super(`the image ${image} is not on this host`);
    this.image = image;
  }
}

export interface CreateOptions {
  signal?: AbortSignal;
  /**
   * The image of the session's last sandbox. The new one has the same where the host still has it, and the spec still
   * asks for its name.
   */
  image?: SandboxImage | undefined;
  /** The new sandbox is a second one of a session, for commands that leave the first. */
  beside?: Beside;
}

/** What a second sandbox of a session shares with the session's own. */
export interface Beside {
  /** Id of the session's own sandbox, which is running. */
  sandboxId: string;
  /** What its spec may ask for. */
  allowances: SandboxAllowances;
}

/** Whether control groups bound sessions without a container, and the engine the disk of a container. */
export type HostLimits = Partial<Pick<HostOffer, 'controlGroups' | 'diskQuota'>>;

/** Creates and finds the sandboxes of one or several policies on this host. */
export interface Sandboxes {
  /**
   * Checks the spec against the operator's settings, then creates the sandbox without starting it. Throws MissingImage.
   */
  create(session: SessionRef, spec: ResolvedSessionSpec, options?: CreateOptions): Promise<Sandbox>;
  /** All sandboxes of this host in its namespace, for adoption and removal after a restart. */
  list(): Promise<FoundSandbox[]>;
  /** Checks that this host can run the policies. Throws DOCKER_UNAVAILABLE, SANDBOX_UNAVAILABLE. */
  check(): Promise<void>;
  /** What this host can enforce. Default: everything. */
  limits?(): Promise<HostLimits>;
  /** Container runtimes that the operator lists, and that this host did not have at its check. Default: none. */
  missingRuntimes?(): string[];
  /**
   * Fetches an image of a spec that was checked. May take minutes, so it is called outside every limit on opening.
   * Throws IMAGE_UNAVAILABLE.
   */
  pull(image: string, signal?: AbortSignal): Promise<void>;
  /**
   * Ids of other fleets of this namespace that have sandboxes here; empty for those of a version without identities.
   * Default: it cannot be known.
   */
  otherFleets?(): Promise<string[]>;
  /** Why no sandbox can be created at present, in a sentence; undefined when one can. */
  problem(): string | undefined;
  /**
   * Removes sandboxes of this host that no session of this process has, and those of hosts for which `isGone` resolves
   * to true. Never those of another namespace. Returns how many were removed.
   */
  sweep(isGone: (hostId: string) => Promise<boolean>): Promise<number>;
  /** What is kept for a post-mortem, after the removal of what is beyond the host's bounds. */
  listKept?(): Promise<KeptContainer[]>;
  /** Removes what is kept of a session. */
  removeKept?(session: SessionRef): Promise<void>;
  close(): Promise<void>;
}
