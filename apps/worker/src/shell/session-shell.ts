import { ATTRIBUTES, type ResolvedSessionSpec, ShellfleetError } from '@shellfleet/protocol';
import type { Logger } from 'pino';
import type { SessionRedaction } from '../redaction/session-redaction.ts';
import type { Sandbox, SandboxDeath, Sandboxes, SessionRef } from '../sandbox/sandbox.ts';
import { connectShell } from './connect-shell.ts';
import { prepareShell } from './prepare-shell.ts';
import type { ShellHello } from './shell.ts';
import type { ShellTerminals } from './shell-terminals.ts';
import { createShellTurns, type ShellTurns, type TurnsWatcher } from './shell-turns.ts';

// The shell of one session on this host: its sandbox, the connection to it, and how many shells there have been.
//
// Sh1. The epoch counts shells over all sandboxes of the session; it is `epochBase` plus what the keeper counts.
// Sh2. A shell is prepared (variables, directory, startup commands) once, before anything is taken for it.

/** A living keeper dials within milliseconds; a busy machine may make it wait. */
const CONNECT_DEADLINE_MS = 15_000;

export interface SessionShellDeps {
  ref: SessionRef;
  spec: ResolvedSessionSpec;
  redaction: SessionRedaction;
  fence: number;
  sandboxes: Sandboxes;
  /** Of this host: starting many containers at once makes all of them late. */
  openGate<T>(open: () => Promise<T>): Promise<T>;
  logger: Logger;
  /** Output of a background process that outlived its entry. */
  onLate: TurnsWatcher['onLate'];
  /** The sandbox is given up: nothing more comes from it. */
  onAbandoned(): void;
  /** The shell went away while nothing of the mailbox ran. */
  onGone(): void;
  /** There is a connection; or, with none, no sandbox any more. */
  onConnected(terminals: ShellTerminals | undefined): Promise<void>;
}

export class SessionShell {
  readonly #deps: SessionShellDeps;
  #sandbox: Sandbox | undefined;
  #death: SandboxDeath | undefined;
  #turns: ShellTurns | undefined;
  #epochBase: number;
  #generation = 0;
  #preparedGeneration = 0;
  #lossReason = '';

  /** `epoch`: shells before this one. */
  constructor(deps: SessionShellDeps, epoch: number) {
    this.#deps = deps;
    this.#epochBase = epoch;
  }

  get epoch(): number {
    return this.#epochBase + this.#generation;
  }

  get epochBase(): number {
    return this.#epochBase;
  }

  /** Why the shell before this one is gone, in words for a Result. */
  get lossReason(): string {
    return this.#lossReason;
  }

  /** Something can be started on it now. */
  get ready(): boolean {
    return (
      this.#turns?.connected === true && this.#death === undefined && this.#preparedGeneration === this.#generation
    );
  }

  get sandboxId(): string | undefined {
    return this.#sandbox?.id;
  }

  get hasSandbox(): boolean {
    return this.#sandbox !== undefined;
  }

  /** When its sandbox was made, also by an earlier life of this worker. */
  get openedAt(): number {
    return this.#sandbox?.createdAt ?? Date.now();
  }

  get death(): SandboxDeath | undefined {
    return this.#death;
  }

  get turns(): ShellTurns {
    if (this.#turns === undefined) throw new Error('the session has no shell');
    return this.#turns;
  }

  /** Opens or prepares whatever is missing before an entry can be started. Throws what a Result then says. */
  async makeReady(signal: AbortSignal): Promise<void> {
    if (this.#sandbox !== undefined && (this.#death !== undefined || this.#turns?.connected !== true)) {
      if (this.#death !== undefined || (await this.reconnect()) === undefined) await this.abandon();
    }
    if (this.#sandbox === undefined) await this.#open(signal);
    if (this.#preparedGeneration !== this.#generation) await this.#prepare(signal);
  }

  /** Sh2: of whatever shell takes its place meanwhile nothing is known. */
  async #prepare(signal: AbortSignal): Promise<void> {
    const generation = this.#generation;
    const { session } = this.#deps.ref;
    await prepareShell(this.turns, this.#deps.spec, this.#deps.redaction, session, generation, signal);
    if (this.#generation !== generation) {
      throw new ShellfleetError('SESSION_START_FAILED', `The shell of session ${session} ended while it was prepared.`);
    }
    this.#preparedGeneration = generation;
  }

  /** Takes over a sandbox that lives from before. `epochBase` and `preparedEpoch` are what was announced of it. */
  async adopt(sandbox: Sandbox, epochBase: number, preparedEpoch: number): Promise<ShellHello> {
    const reached = this.epoch;
    this.#hold(sandbox);
    this.#epochBase = epochBase;
    // A shell that took the place of another while no worker was there has had no preparation.
    this.#preparedGeneration = preparedEpoch - epochBase;
    return this.#connect(sandbox, CONNECT_DEADLINE_MS).catch((error: unknown) => {
      // The shells that the session had still count: otherwise the next shell would pass for the one that was lost.
      this.#epochBase = reached;
      this.#generation = 0;
      throw error;
    });
  }

  /** After a broken connection: the keeper's hello, or undefined when the sandbox is gone. */
  async reconnect(): Promise<ShellHello | undefined> {
    const sandbox = this.#sandbox;
    if (sandbox === undefined || this.#death !== undefined) return undefined;
    this.#turns?.shell.disconnect();
    const connected = this.#connect(sandbox, CONNECT_DEADLINE_MS).catch(() => undefined);
    const hello = await Promise.race([connected, sandbox.died.then(() => undefined)]);
    return hello ?? this.giveUp();
  }

  /** Ends a sandbox whose keeper cannot be spoken with, unless it is gone already. */
  async giveUp(): Promise<undefined> {
    if (this.#sandbox === undefined || this.#death !== undefined) return;
    this.#deps.logger.warn(describe(this.#sandbox), 'shell.unresponsive');
    await this.discard();
    this.#death ??= { reason: 'killed', exitCode: null };
  }

  /** Ends the sandbox under whatever still uses it, which then finds out. Never rejects. */
  async discard(): Promise<void> {
    if (this.#sandbox !== undefined) await this.#remove(this.#sandbox);
  }

  /** What an entry's end says of the shells: a fresh one has to be prepared. */
  noteGeneration(generation: number, reason: string): void {
    if (generation === this.#generation) return;
    this.#generation = generation;
    this.#lossReason = reason;
  }

  /** Ends the shell in order, then its sandbox. */
  async end(terminationTimeoutMs: number): Promise<void> {
    if (this.#turns?.connected === true && this.#death === undefined) {
      await this.#turns.shell
        .end({ terminationTimeoutMs })
        .catch((err: unknown) => this.#deps.logger.warn({ err }, 'shell.end-failed'));
    }
    await this.abandon();
  }

  /** Ends the sandbox as it is. Never rejects. `reason`: why its shell is lost, where the sandbox itself is still alive. */
  async abandon(reason = describeDeath(this.#death)): Promise<void> {
    const sandbox = this.#sandbox;
    if (sandbox === undefined) return;
    this.#lossReason = reason;
    this.#epochBase = this.epoch;
    this.#generation = 0;
    this.#preparedGeneration = 0;
    this.#sandbox = undefined;
    this.#turns?.shell.disconnect();
    this.#turns = undefined;
    this.#death = undefined;
    this.#deps.onAbandoned();
    await Promise.all([this.#remove(sandbox), this.#deps.onConnected(undefined)]);
  }

  /** Leaves the sandbox to the next owner or the next life of this worker. */
  leave(): void {
    this.#turns?.shell.disconnect();
  }

  /** The time in line is nobody's timeout: the deadline begins with the start of the container. */
  #open(signal: AbortSignal): Promise<void> {
    return this.#deps.openGate(() => this.#openNow(signal));
  }

  async #openNow(signal: AbortSignal): Promise<void> {
    const sandbox = await this.#deps.sandboxes.create(this.#deps.ref, this.#deps.spec, { signal });
    this.#hold(sandbox);
    try {
      await this.#connect(sandbox, this.#deps.spec.startupTimeoutMs, true);
    } catch (error) {
      await this.abandon();
      throw error;
    }
  }

  async #remove(sandbox: Sandbox): Promise<void> {
    await sandbox.remove().catch((err: unknown) => {
      // What is left is removed when the worker starts again.
      this.#deps.logger.warn({ err, ...describe(sandbox) }, 'sandbox.remove-failed');
    });
  }

  #hold(sandbox: Sandbox): void {
    this.#sandbox = sandbox;
    this.#death = undefined;
    void sandbox.died.then((death) => {
      if (this.#sandbox !== sandbox) return;
      this.#death = death;
      this.#deps.onGone();
    });
  }

  async #connect(sandbox: Sandbox, deadlineMs: number, start = false): Promise<ShellHello> {
    const shell = await connectShell(sandbox, { fence: this.#deps.fence, deadlineMs, start });
    const known = this.#generation || this.#preparedGeneration;
    this.#generation = shell.hello.generation;
    if (known !== 0 && known !== this.#generation) this.#lossReason = 'the shell ended while its worker was away';
    this.#turns = createShellTurns(shell, {
      onShell: ({ generation, reason }) => {
        this.noteGeneration(generation, reason);
        this.#deps.onGone();
      },
      onLate: this.#deps.onLate,
      onGone: () => this.#deps.onGone(),
    });
    void this.#deps.onConnected(shell.terminals);
    return shell.hello;
  }
}

function describe({ containerId, description }: Sandbox): Record<string, string> {
  return containerId === undefined ? { sandbox: description } : { [ATTRIBUTES.containerId]: containerId };
}

function describeDeath(death: SandboxDeath | undefined): string {
  switch (death?.reason) {
    case undefined:
      return 'the sandbox was replaced';
    case 'oom':
      return 'the sandbox ran out of memory';
    case 'removed':
      return 'the sandbox was removed';
    case 'killed':
      return 'the sandbox was killed';
    case 'exited':
      return 'the sandbox ended';
  }
}
