import { ATTRIBUTES, type Outcome, type ResolvedSessionSpec, ShellfleetError } from '@shellfleet/protocol';
import type { Logger } from 'pino';
import type { SessionEgress } from '../egress/session-egress.ts';
import type { SessionRedaction } from '../redaction/session-redaction.ts';
import {
  MissingImage,
  type Sandbox,
  type SandboxDeath,
  type Sandboxes,
  type SandboxImage,
  type SessionRef,
} from '../sandbox/sandbox.ts';
import { connectShell } from './connect-shell.ts';
import { prepareShell } from './prepare-shell.ts';
import type { Shell, ShellEvents, ShellHello } from './shell.ts';
import type { ShellTerminals } from './shell-terminals.ts';

// The shell of one session on this host: its sandbox, the connection to it, and the count of shells so far.
//
// EPOCH-1. The epoch counts shells over all sandboxes of the session: `epochBase` plus the number that the keeper gives the shell.
// EPOCH-2. A shell is prepared (variables, directory, startup commands) once, before any entry of the mailbox starts on it.

/** Outcomes after which a sandbox is worth a look. */
const FAILURES: ReadonlySet<Outcome> = new Set(['failure', 'timeout', 'lost', 'error']);

/** A living keeper connects within milliseconds; on a busy machine it may take seconds. */
const CONNECT_DEADLINE_MS = 15_000;
/** The keeper answers from memory of the kernel. */
const DIRECTORY_WITHIN_MS = 10_000;

export interface SessionShellDeps {
  ref: SessionRef;
  spec: ResolvedSessionSpec;
  redaction: SessionRedaction;
  fence: number;
  sandboxes: Pick<Sandboxes, 'create' | 'pull'>;
  /** The proxy of its network, where that is limited. */
  egress?: SessionEgress | undefined;
  /** Limits how many sandboxes this host starts at a time: many at once make all of them late. */
  limitOpening<T>(open: () => Promise<T>): Promise<T>;
  logger: Logger;
  /** Keeps its sandbox for a post-mortem, and says whether it could. Absent: it is removed. */
  keep?(sandbox: Sandbox, reason: string): Promise<boolean>;
  onLate: ShellEvents['onLate'];
  /** The sandbox is given up: no more late output comes from it. */
  onAbandoned(): void;
  /** The shell ended while no entry of the mailbox ran. */
  onGone(): void;
  /** A connection was made; without terminals: the sandbox is gone. */
  onConnected(terminals: ShellTerminals | undefined): Promise<void>;
}

export class SessionShell {
  readonly #deps: SessionShellDeps;
  #sandbox: Sandbox | undefined;
  #death: SandboxDeath | undefined;
  /** This host ended the sandbox because its keeper did not answer. */
  #unresponsive = false;
  #live: Shell | undefined;
  #epochBase: number;
  #shellNumber = 0;
  #preparedShellNumber = 0;
  #lossReason: string;
  #reportedEpoch: number;
  #opened = { from: 0, to: 0 };
  /** That of its last command, if that failed. */
  #failure: Outcome | undefined;
  /** The image of its last sandbox. */
  #image: SandboxImage | undefined;

  /** `lossReason`: why the last of the shells so far is gone, unless it is adopted. */
  constructor(
    deps: SessionShellDeps,
    {
      epoch,
      reportedEpoch,
      lossReason,
      image,
    }: { epoch: number; reportedEpoch: number; lossReason: string; image?: SandboxImage | undefined },
  ) {
    this.#deps = deps;
    this.#epochBase = epoch;
    this.#reportedEpoch = reportedEpoch;
    this.#lossReason = lossReason;
    this.#image = image;
  }

  get epoch(): number {
    return this.#epochBase + this.#shellNumber;
  }

  get epochBase(): number {
    return this.#epochBase;
  }

  /** The epoch in the session's last Result. */
  get reportedEpoch(): number {
    return this.#reportedEpoch;
  }

  /** When the last opening of a shell began and ended, by the host's clock; zeros when this host has opened none. */
  get opened(): { from: number; to: number } {
    return this.#opened;
  }

  /** Why the shell before this one is gone, in words for a Result. */
  get lossReason(): string {
    return this.#death === undefined ? this.#lossReason : this.#describeEnd();
  }

  /** An entry can be started on it now. */
  get ready(): boolean {
    return (
      this.#live?.connected === true && this.#death === undefined && this.#preparedShellNumber === this.#shellNumber
    );
  }

  /** The shell on which the entries of the mailbox run; 0 before the first was prepared. */
  get preparedShellNumber(): number {
    return this.#preparedShellNumber;
  }

  get sandboxId(): string | undefined {
    return this.#sandbox?.id;
  }

  /** That of its sandbox, or of the last one when it has none. A new sandbox has the same, where the host still has it. */
  get image(): SandboxImage | undefined {
    return this.#image;
  }

  /** Its living shell was ready for commands, so what they changed is in it. */
  get hasState(): boolean {
    return this.#sandbox !== undefined && this.#death === undefined && this.#preparedShellNumber !== 0;
  }

  get hasSandbox(): boolean {
    return this.#sandbox !== undefined;
  }

  /** When its sandbox was created, also by an earlier process of this worker. */
  get openedAt(): number {
    return this.#sandbox?.createdAt ?? Date.now();
  }

  get death(): SandboxDeath | undefined {
    return this.#death;
  }

  /** This host ended the sandbox because its keeper did not answer. */
  get unresponsive(): boolean {
    return this.#unresponsive;
  }

  /** The last connection to the shell, possibly broken; a reconnection replaces it. Undefined without a sandbox. */
  get live(): Shell | undefined {
    return this.#live;
  }

  /**
   * The directory in which a command would run: that of the shell, or the one to which `path` leads from there, without links. Undefined when
   * it is not known: there is no such directory or no shell that is ready, or its keeper does not answer.
   */
  async directory(path?: string): Promise<string | undefined> {
    if (this.#live === undefined || !this.ready) return undefined;
    const signal = AbortSignal.timeout(DIRECTORY_WITHIN_MS);
    return this.#live.directory({ signal, ...(path !== undefined && { path }) }).catch((err: unknown) => {
      this.#deps.logger.warn({ err }, 'shell.directory-unknown');
      return undefined;
    });
  }

  /** A Result with the current epoch is stored. */
  recordReported(): void {
    this.#reportedEpoch = this.epoch;
  }

  /** A command has ended. What was denied or cancelled says nothing about the sandbox. */
  recordOutcome(outcome: Outcome): void {
    if (outcome !== 'denial' && outcome !== 'cancellation') this.#failure = FAILURES.has(outcome) ? outcome : undefined;
  }

  recordOpened(opened: { from: number; to: number }): void {
    this.#opened = opened;
  }

  /** Opens and prepares the shell as far as needed, so that an entry can be started. Throws the error for Results of waiting entries. */
  async makeReady(signal: AbortSignal): Promise<void> {
    if (this.#sandbox !== undefined && (this.#death !== undefined || this.#live?.connected !== true)) {
      if (this.#death !== undefined || (await this.reconnect()) === undefined) await this.abandon();
    }
    if (this.#sandbox === undefined) await this.#open(signal);
    if (this.#preparedShellNumber !== this.#shellNumber) await this.#prepare(signal);
  }

  /** EPOCH-2: throws when another shell replaces this one meanwhile, since that one is not prepared. */
  async #prepare(signal: AbortSignal): Promise<void> {
    const shellNumber = this.#shellNumber;
    const { session } = this.#deps.ref;
    if (this.#live === undefined) throw new Error('the session has no shell');
    const endUse = this.#deps.egress?.begin('limited');
    await prepareShell(this.#live, this.#deps.spec, this.#deps.redaction, session, shellNumber, signal).finally(endUse);
    if (this.#shellNumber !== shellNumber) {
      throw new ShellfleetError('SESSION_START_FAILED', `The shell of session ${session} ended while it was prepared.`);
    }
    this.#preparedShellNumber = shellNumber;
  }

  /** Takes over a sandbox that is alive. `epochBase` and `preparedEpoch`: as announced when it was opened. */
  async adopt(sandbox: Sandbox, epochBase: number, preparedEpoch: number): Promise<ShellHello> {
    this.#hold(sandbox);
    await this.#offerEgress(sandbox);
    return this.#connect(sandbox, CONNECT_DEADLINE_MS, {
      // Until then the session's earlier shells count: the next shell must not have the epoch of one that was lost.
      onHello: () => {
        this.#epochBase = epochBase;
        // A shell that replaced another while no worker was connected is not prepared.
        this.#preparedShellNumber = preparedEpoch - epochBase;
      },
    });
  }

  /** After a broken connection: the keeper's hello, or undefined when the sandbox is gone. */
  async reconnect(): Promise<ShellHello | undefined> {
    const sandbox = this.#sandbox;
    if (sandbox === undefined || this.#death !== undefined) return undefined;
    this.#live?.disconnect();
    const connected = this.#connect(sandbox, CONNECT_DEADLINE_MS).catch(() => undefined);
    const hello = await Promise.race([connected, sandbox.died.then(() => undefined)]);
    return hello ?? this.giveUp();
  }

  /** Ends a sandbox whose keeper does not answer, unless it is gone already. */
  async giveUp(): Promise<undefined> {
    if (this.#sandbox === undefined || this.#death !== undefined) return;
    this.#deps.logger.warn(describe(this.#sandbox), 'shell.unresponsive');
    this.#unresponsive = true;
    await this.discard();
    this.#death ??= { reason: 'killed', exitCode: null };
  }

  /** Ends the sandbox while it may be in use; its users see the connection break. Never rejects. */
  async discard(): Promise<void> {
    if (this.#sandbox !== undefined) await this.#remove(this.#sandbox);
  }

  /** Records which shell an entry ended on. Another number than before: a fresh shell, which has to be prepared. */
  recordShell(shellNumber: number, reason: string): void {
    if (shellNumber === this.#shellNumber) return;
    this.#shellNumber = shellNumber;
    this.#lossReason = reason;
  }

  /** Ends the shell in order, then its sandbox. `reason`: why, in words for a later Result, unless the sandbox has died by itself. */
  async end(terminationTimeoutMs: number, reason: string): Promise<void> {
    const live = this.#live?.connected === true && this.#death === undefined ? this.#live : undefined;
    await live
      ?.end({ terminationTimeoutMs })
      .catch((err: unknown) => this.#deps.logger.warn({ err }, 'shell.end-failed'));
    await this.abandon(this.#death === undefined ? reason : this.#describeEnd(), {
      inOrder: live !== undefined,
    });
  }

  /** Ends the sandbox without ending the shell in order. Never rejects. `reason`: why the shell is lost, when the sandbox is alive. */
  async abandon(reason = this.#describeEnd(), { inOrder = false } = {}): Promise<void> {
    const sandbox = this.#sandbox;
    if (sandbox === undefined) return;
    const keptFor = this.#whyKeep(reason, inOrder);
    this.#lossReason = reason;
    this.#epochBase = this.epoch;
    this.#shellNumber = 0;
    this.#preparedShellNumber = 0;
    this.#sandbox = undefined;
    this.#live?.disconnect();
    this.#live = undefined;
    this.#deps.egress?.close();
    this.#death = undefined;
    this.#deps.onAbandoned();
    await Promise.all([this.#remove(sandbox, keptFor), this.#deps.onConnected(undefined)]);
  }

  /** Leaves the sandbox to the next owner or the next process of this worker. */
  leave(): void {
    this.#live?.disconnect();
    this.#deps.egress?.close();
  }

  /** Queueing does not use up startupTimeoutMs: its clock begins with the start of the container. */
  async #open(signal: AbortSignal): Promise<void> {
    const open = () => this.#deps.limitOpening(() => this.#openNow(signal));
    try {
      await open();
    } catch (error) {
      if (!(error instanceof MissingImage)) throw error;
      // Outside the limit: a slow registry delays no other session.
      await this.#deps.sandboxes.pull(error.image, signal);
      await open();
    }
  }

  async #openNow(signal: AbortSignal): Promise<void> {
    const sandbox = await this.#deps.sandboxes.create(this.#deps.ref, this.#deps.spec, { signal, image: this.#image });
    this.#hold(sandbox);
    try {
      await this.#offerEgress(sandbox);
      await this.#connect(sandbox, this.#deps.spec.startupTimeoutMs, { start: true });
    } catch (error) {
      await this.abandon();
      throw error;
    }
  }

  async #offerEgress({ egressPath, description }: Sandbox): Promise<void> {
    if (this.#deps.egress === undefined) return;
    if (egressPath === undefined) throw new Error(`${description} was made without a way to its proxy`);
    await this.#deps.egress.listen(egressPath);
  }

  /** Why the sandbox stays for a post-mortem, in words; undefined when it does not. */
  #whyKeep(reason: string, inOrder: boolean): string | undefined {
    if (this.#deps.keep === undefined || this.#preparedShellNumber === 0) return undefined;
    if (!inOrder) return reason;
    return this.#failure && `its last command ended as ${this.#failure}`;
  }

  async #remove(sandbox: Sandbox, keptFor?: string): Promise<void> {
    this.#failure = undefined;
    if (keptFor !== undefined && (await this.#deps.keep?.(sandbox, keptFor)) === true) return;
    await sandbox.remove().catch((err: unknown) => {
      // The next start of the worker removes the rest.
      this.#deps.logger.warn({ err, ...describe(sandbox) }, 'sandbox.remove-failed');
    });
  }

  #describeEnd(): string {
    return this.#unresponsive ? 'its keeper did not answer' : describeDeath(this.#death);
  }

  #hold(sandbox: Sandbox): void {
    this.#sandbox = sandbox;
    this.#image = sandbox.image;
    this.#death = undefined;
    this.#unresponsive = false;
    void sandbox.died.then((death) => {
      if (this.#sandbox !== sandbox) return;
      this.#death = death;
      this.#deps.onGone();
    });
  }

  async #connect(
    sandbox: Sandbox,
    deadlineMs: number,
    { start = false, onHello }: { start?: boolean; onHello?: () => void } = {},
  ): Promise<ShellHello> {
    const onMessage = (message: string) => this.#deps.logger.warn({ ...describe(sandbox), message }, 'keeper.reported');
    const shell = await connectShell(sandbox, { fence: this.#deps.fence, deadlineMs, start, onMessage });
    onHello?.();
    const known = this.#shellNumber || this.#preparedShellNumber;
    this.#shellNumber = shell.hello.shellNumber;
    if (known !== 0 && known !== this.#shellNumber) this.#lossReason = 'the shell ended while its worker was away';
    this.#live = shell;
    shell.on({
      onShell: ({ shellNumber, reason }) => {
        this.recordShell(shellNumber, reason);
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
    case 'disk':
      return 'the sandbox filled the disk of its host, and was ended';
    case 'removed':
      return 'the sandbox was removed';
    case 'killed':
      return 'the sandbox was killed';
    case 'exited':
      return 'the sandbox ended';
  }
}
