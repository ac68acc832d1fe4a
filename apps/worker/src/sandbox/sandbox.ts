import type { Duplex } from 'node:stream';
import type { ResolvedSessionSpec } from '@shellfleet/protocol';

// Where a shell lives. A sandbox outlives the worker: what is needed to find it again lies with the sandbox itself.
//
// Sb1. A sandbox is hardened exactly as its policy's plan says, or it is not made.
// Sb2. Nothing that names or describes a sandbox to others (labels, names, arguments) holds a secret or a script.
// Sb3. Once started, it ends for a reason that is told within 2 s: see `died`.

export interface SessionRef {
  namespace: string;
  tenant: string;
  session: string;
}

/** `socket`: the keeper dials a unix socket of ours. `attach`: frames over the engine's attach, where no folder can be shared. */
export type SandboxTransport = 'socket' | 'attach';

/** How to reach the keeper. Chosen when the sandbox is made, and kept for its life. */
export type KeeperLink =
  | { type: 'socket'; path: string; token: string }
  | { type: 'attach'; token: string; syncWord: string; open(): Promise<Duplex> };

export interface SandboxDeath {
  /** `exited`: the keeper ended by itself. */
  reason: 'oom' | 'removed' | 'killed' | 'exited';
  exitCode: number | null;
}

export interface Sandbox {
  readonly id: string;
  readonly session: SessionRef;
  /** Where it is a container of an engine. */
  readonly containerId?: string;
  /** What it is, for messages. */
  readonly description: string;
  /** ms, by the clock of this host */
  readonly createdAt: number;
  /** KEEPER_PROTOCOL_VERSION of the worker that made it, so of its keeper. Compared on adoption. */
  readonly keeperProtocol: number;
  readonly link: KeeperLink;
  /** Resolves once, when it is gone, whoever ended it; never rejects. */
  readonly died: Promise<SandboxDeath>;
  /** The keeper starts and looks for us: listen, or attach, before. Adopted sandboxes run already. */
  start(): Promise<void>;
  /** Ends and forgets it, with everything that it left on this host. Of one that is gone: no-op. */
  remove(): Promise<void>;
}

export interface FoundSandbox {
  sandbox: Sandbox;
  /** `created`: never started, a leftover of a worker that died in between. */
  state: 'created' | 'running' | 'dead';
}

/** What a policy, or several of them, offer on this host. */
export interface Sandboxes {
  /** Checks the spec against the operator's word, then makes the sandbox; it is not started yet. */
  create(session: SessionRef, spec: ResolvedSessionSpec, options?: { signal?: AbortSignal }): Promise<Sandbox>;
  /** All sandboxes of this host in its namespace, for adoption and sweeping after a restart. */
  list(): Promise<FoundSandbox[]>;
  /** Can this host do what it offers? Throws DOCKER_UNAVAILABLE, SANDBOX_UNAVAILABLE. */
  check(): Promise<void>;
  close(): Promise<void>;
}
