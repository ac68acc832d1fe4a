import { setTimeout as delay } from 'node:timers/promises';
import { type ColdReason, type Outcome, ShellfleetError, SPANS } from '@shellfleet/protocol';
import { describeDeath } from '../sandbox/describe-death.ts';
import { removeSandbox, sandboxFields } from '../sandbox/remove-sandbox.ts';
import type { Sandbox, SandboxDeath, SandboxImage } from '../sandbox/sandbox.ts';
import { traceStep } from '../tracing/session-traces.ts';
import { connectShell } from './connect-shell.ts';
import { createInTurn } from './create-in-turn.ts';
import { FencedOff } from './keeper-connection.ts';
import { type Interval, NEVER_OPENED, type ShellOpening } from './opening.ts';
import type { WarmShell } from './pool/warm-shell.ts';
import { prepareShell } from './prepare-shell.ts';
import type { SessionShellDeps } from './session-shell-deps.ts';
import type { Shell, ShellHello } from './shell.ts';

// The shell of one session on this host: its sandbox, the connection to it, and the count of shells so far.
// EPOCH-1. The epoch counts shells over all sandboxes of the session: `epochBase` plus the keeper's number.
// EPOCH-2. A shell is prepared (variables, directory, startup commands) once, before any entry starts on it.

/** Outcomes after which an inspection of the sandbox can help. */
const FAILURES: ReadonlySet<Outcome> = new Set(['failure', 'timeout', 'lost', 'error']);

/** Time for a keeper to connect. It normally needs milliseconds, and seconds on a busy machine. */
const CONNECT_DEADLINE_MS = 15_000;
/**
 * Time for a network that lets nothing through to a sandbox that runs, for example since its rules do not have the
 * address of a new worker yet.
 */
const REACH_DEADLINE_MS = 60_000;
/** Time for the keeper of a pool's sandbox, which is connected, to answer its new owner. */
const HAND_OVER_MS = 2_000;
/** Time for the engine to report that a sandbox has died, after the connection to it broke. */
const DEATH_REPORT_MS = 500;
/** Time for the keeper to reply with a directory, which it reads from the kernel's memory. */
const DIRECTORY_WITHIN_MS = 10_000;

/** What others may know of the sandbox. */
type SandboxFacts = Pick<Sandbox, 'id' | 'containerId' | 'node' | 'createdAt' | 'waitsFor'>;

export class SessionShell {
  readonly #deps: SessionShellDeps;
  #sandbox: Sandbox | undefined;
  #death: SandboxDeath | undefined;
  /** Whether this host ended the sandbox because its keeper did not answer. */
  #unresponsive = false;
  #live: Shell | undefined;
  #epochBase: number;
  #shellNumber = 0;
  #preparedShellNumber = 0;
  #lossReason: string;
  #reportedEpoch: number;
  #opened = NEVER_OPENED;
  /** Pulls of the opening that is under way. */
  #pull: ShellOpening['pull'];
  /** Outcome of the last command, if it failed. */
  #failure: Outcome | undefined;
  /** Image of the last sandbox. */
  #image: SandboxImage | undefined;
  /** Why the sandbox was created for the session, `warm` if a pool had it. Undefined if this host did not open it. */
  #start: 'warm' | ColdReason | undefined;
  #isCreating = false;
  /** Whether the sandbox is left to its next owner, as it is. */
  #isLeft = false;

  /** `lossReason` tells why the session's previous shell is gone, unless it is adopted. */
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

  /** The last opening. */
  get opened(): ShellOpening {
    return this.#opened;
  }

  /** Why the previous shell is gone, in words for a Result. */
  get lossReason(): string {
    return this.#death === undefined ? this.#lossReason : this.#describeEnd();
  }

  /** Whether an entry can be started on the shell now. */
  get ready(): boolean {
    return (
      this.#live?.connected === true &&
      this.#death === undefined &&
      this.#sandbox?.ending === undefined &&
      this.#preparedShellNumber === this.#shellNumber
    );
  }

  /** Number of the shell on which entries run. 0 before the first one was prepared. */
  get preparedShellNumber(): number {
    return this.#preparedShellNumber;
  }

  /** The sandbox, which may have died. */
  get sandbox(): SandboxFacts | undefined {
    return this.#sandbox;
  }

  /** Image of the sandbox, or of the last one. A new sandbox has the same, if the host still has it. */
  get image(): SandboxImage | undefined {
    return this.#image;
  }

  /** How the shell began: `warm`, or `cold` with a reason. Empty for an adopted shell. */
  get start(): string {
    if (this.#start === undefined) return '';
    return this.#start === 'warm' ? 'warm' : `cold ${this.#start}`;
  }

  /** Whether the session has a sandbox, or is about to have one that is no pool's. */
  get usesSandbox(): boolean {
    return this.#sandbox !== undefined || this.#isCreating;
  }

  /** Whether commands may have changed the living shell. */
  get hasState(): boolean {
    return this.#sandbox !== undefined && this.#death === undefined && this.#preparedShellNumber !== 0;
  }

  /** Whether a sandbox that this host did not open is connected for the first time. */
  get isBeingAdopted(): boolean {
    return this.#sandbox !== undefined && this.#start === undefined && this.#live === undefined;
  }

  get death(): SandboxDeath | undefined {
    return this.#death;
  }

  get unresponsive(): boolean {
    return this.#unresponsive;
  }

  /** The last connection, which may be broken until a reconnection replaces it. Undefined without a sandbox. */
  get live(): Shell | undefined {
    return this.#live;
  }

  /** Returns the directory of the shell, or of `path` relative to it, with links resolved. Undefined if unknown. */
  async directory(path?: string): Promise<string | undefined> {
    if (this.#live === undefined || !this.ready) return undefined;
    const signal = AbortSignal.timeout(DIRECTORY_WITHIN_MS);
    return this.#live.directory({ signal, ...(path !== undefined && { path }) }).catch((err: unknown) => {
      this.#deps.logger.warn({ err }, 'shell.directory-unknown');
      return undefined;
    });
  }

  /** Records that a Result with the current epoch is stored. */
  recordReported(): void {
    this.#reportedEpoch = this.epoch;
  }

  /** Records a command's end. A denial or cancellation tells nothing about the sandbox. */
  recordOutcome(outcome: Outcome): void {
    if (outcome !== 'denial' && outcome !== 'cancellation') this.#failure = FAILURES.has(outcome) ? outcome : undefined;
  }

  /** Records the times of an opening, with its pulls. */
  recordOpened({ from, to }: { from: number; to: number }): void {
    this.#opened = { from, to, pull: this.#pull };
    this.#pull = undefined;
  }

  /** Opens and prepares the shell as needed to start an entry. Throws the error for Results of waiting entries. */
  async makeReady(signal: AbortSignal): Promise<void> {
    this.#refuseIfLeft();
    const ending = this.#sandbox?.ending;
    if (ending !== undefined && this.#death === undefined) await this.abandon(describeDeath(ending));
    if (this.#sandbox !== undefined && (this.#death !== undefined || this.#live?.connected !== true)) {
      if (this.#death !== undefined || (await this.reconnect()) === undefined) await this.abandon();
    }
    this.#refuseIfLeft();
    if (this.#sandbox === undefined) await this.#open(signal);
    if (this.#preparedShellNumber !== this.#shellNumber)
      await traceStep(this.#deps.traces, SPANS.prepareShell, () => this.#prepare(signal));
  }

  /** Prepares the shell (EPOCH-2). Throws when another, unprepared shell replaces it in the meantime. */
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

  /** Adopts a living sandbox. `epochBase` and `preparedEpoch` were stored when it was opened. */
  async adopt(sandbox: Sandbox, epochBase: number, preparedEpoch: number): Promise<ShellHello> {
    this.#hold(sandbox);
    await this.#deps.uses.begin(this.#deps.ref.tenant, sandbox, { isAdopted: true });
    await this.#offerEgress(sandbox);
    return this.#connect(sandbox, CONNECT_DEADLINE_MS, {
      signal: this.#deps.movable?.lost,
      // Until the hello, the session's earlier shells count, as the next shell must not reuse the epoch of a lost one.
      onHello: () => {
        this.#epochBase = epochBase;
        // A shell that replaced another while no worker was connected is not prepared.
        this.#preparedShellNumber = preparedEpoch - epochBase;
      },
    });
  }

  /** Connects again, unless `signal` aborts. Returns the keeper's hello, or undefined when the sandbox is gone. */
  async reconnect(signal = this.#deps.movable?.lost): Promise<ShellHello | undefined> {
    const sandbox = this.#sandbox;
    if (sandbox === undefined || this.#death !== undefined || this.#isLeft) return undefined;
    this.#live?.disconnect();
    const connected = this.#connect(sandbox, CONNECT_DEADLINE_MS, { signal }).catch(() => undefined);
    const hello = await Promise.race([connected, sandbox.died.then(() => undefined)]);
    return hello ?? this.giveUp();
  }

  /** Ends a sandbox whose keeper does not answer. Only records its death if it has died. */
  async giveUp(): Promise<undefined> {
    if (this.#sandbox === undefined || this.#death !== undefined || this.#isLeft) return;
    // A removal breaks the connections of a sandbox before the engine reports its death.
    await Promise.race([this.#sandbox.died, delay(DEATH_REPORT_MS, undefined, { ref: false })]);
    if (this.#death !== undefined || this.#isLeft) return;
    this.#deps.logger.warn(sandboxFields(this.#sandbox), 'shell.unresponsive');
    this.#unresponsive = true;
    await this.discard();
    this.#death ??= { reason: 'killed', exitCode: null };
  }

  /** Ends the sandbox, even while it is in use, which breaks the connection of its users. Never rejects. */
  async discard(): Promise<void> {
    if (this.#sandbox !== undefined && !this.#isLeft) await this.#remove(this.#sandbox);
  }

  /** Records on which shell an entry ended. A new number is a fresh shell, which has to be prepared. */
  recordShell(shellNumber: number, reason: string): void {
    if (shellNumber === this.#shellNumber) return;
    this.#shellNumber = shellNumber;
    this.#lossReason = reason;
  }

  /** Ends the shell in order, then its sandbox. `reason` is for a later Result, unless the sandbox died by itself. */
  async end(terminationTimeoutMs: number, reason: string): Promise<void> {
    const live = this.#live?.connected === true && this.#death === undefined ? this.#live : undefined;
    await live
      ?.end({ terminationTimeoutMs })
      .catch((err: unknown) => this.#deps.logger.warn({ err }, 'shell.end-failed'));
    await this.abandon(this.#death === undefined ? reason : this.#describeEnd(), {
      inOrder: live !== undefined,
    });
  }

  /** Ends the sandbox at once. `reason` tells why a living shell is lost. Never rejects. */
  async abandon(reason = this.#describeEnd(), { inOrder = false } = {}): Promise<void> {
    const sandbox = this.#sandbox;
    if (sandbox === undefined) return;
    // No other owner can know of a sandbox that was opened here and never prepared.
    const isUnknown = this.#start !== undefined && this.#preparedShellNumber === 0;
    if (this.#isLeft && !isUnknown) return this.#deps.uses.end(sandbox);
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
    await Promise.all([this.#remove(sandbox, { keptFor, isUnknown }), this.#deps.onConnected(undefined)]);
  }

  /** Leaves the sandbox to the next owner or the next process of this worker. It is not used here any more. */
  leave(): void {
    this.#isLeft = true;
    this.#live?.disconnect();
    this.#deps.egress?.close();
  }

  /** Throws if the sandbox was left to its next owner, and closes the connection that was made meanwhile. */
  #refuseIfLeft(shell?: Shell): void {
    if (!this.#isLeft) return;
    shell?.disconnect();
    throw new Error('the shell was left to its next owner');
  }

  /** Opens the shell, from a pool or in a sandbox that is created for it. */
  async #open(signal: AbortSignal): Promise<void> {
    if (await this.#openWarm()) return;
    this.#isCreating = true;
    // The slot may be one of a pool.
    this.#deps.pools.tend();
    await this.#create(signal).finally(() => {
      this.#isCreating = false;
    });
  }

  /** Takes a ready shell of a pool. Returns false, with the reason in `start`, when there is none for this session. */
  async #openWarm(): Promise<boolean> {
    const { pools, ref, spec, traces, uses } = this.#deps;
    const taken = await traceStep(traces, SPANS.takeWarm, () => pools.take(ref, spec, this.#image));
    this.#start = taken.type === 'warm' ? 'warm' : taken.reason;
    if (taken.type === 'cold') return false;
    this.#hold(taken.sandbox);
    // What the sandbox used while it waited is not the tenant's.
    await uses.begin(ref.tenant, taken.sandbox, { isAdopted: true });
    try {
      const shell = await traceStep(traces, SPANS.connectKeeper, () => this.#handOver(taken.sandbox, taken.shell));
      this.#refuseIfLeft(shell);
      this.#use(shell);
      return true;
    } catch (err) {
      this.#deps.logger.warn({ err, ...sandboxFields(taken.sandbox) }, 'pool.hand-over-failed');
      await this.abandon(this.#lossReason);
      this.#refuseIfLeft();
      this.#start = 'empty';
      return false;
    }
  }

  #handOver(sandbox: Sandbox, shell: WarmShell): Promise<Shell> {
    return shell.handOver(this.#deps.fence, { deadlineMs: HAND_OVER_MS, onMessage: this.#reporterOf(sandbox) });
  }

  /** Creates the sandbox and connects to it. */
  async #create(signal: AbortSignal): Promise<void> {
    this.#pull = undefined;
    const connect = (sandbox: Sandbox) => this.#connectNew(sandbox, signal);
    const onPulled = (pull: Interval) => {
      this.#pull = { from: this.#pull?.from ?? pull.from, to: pull.to };
    };
    await createInTurn(this.#deps, { image: this.#image, signal, connect, onPulled });
  }

  async #connectNew(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    const { ref, spec, traces, uses } = this.#deps;
    this.#hold(sandbox);
    await uses.begin(ref.tenant, sandbox, { isAdopted: false });
    try {
      await this.#offerEgress(sandbox);
      const connect = () => this.#connect(sandbox, spec.startupTimeoutMs, { start: true, signal });
      await traceStep(traces, SPANS.connectKeeper, connect);
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

  /** Returns why to keep the sandbox for a post-mortem, in words. Undefined if there is no reason. */
  #whyKeep(reason: string, inOrder: boolean): string | undefined {
    if (this.#deps.keep === undefined || this.#preparedShellNumber === 0) return undefined;
    if (!inOrder) return reason;
    return this.#failure && `its last command ended as ${this.#failure}`;
  }

  async #remove(
    sandbox: Sandbox,
    { keptFor, isUnknown = false }: { keptFor?: string | undefined; isUnknown?: boolean } = {},
  ): Promise<void> {
    this.#failure = undefined;
    await this.#deps.uses.end(sandbox);
    if (!isUnknown && (await this.#deps.movable?.mayRemove()) === false) return;
    if (keptFor !== undefined && (await this.#deps.keep?.(sandbox, keptFor)) === true) return;
    await removeSandbox(sandbox, this.#deps.logger);
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
    {
      start = false,
      signal,
      onHello,
    }: { start?: boolean; signal?: AbortSignal | undefined; onHello?: () => void } = {},
  ): Promise<ShellHello> {
    const onMessage = this.#reporterOf(sandbox);
    const { fence, movable } = this.#deps;
    // A shell that is living is worth a longer wait than a new one.
    const unreachedDeadlineMs = start ? deadlineMs : REACH_DEADLINE_MS;
    const options = { fence, deadlineMs, unreachedDeadlineMs, start, onMessage, signal };
    const shell = await connectShell(sandbox, options).catch((error: unknown) => {
      if (error instanceof FencedOff) movable?.onFencedOff();
      throw error;
    });
    this.#refuseIfLeft(shell);
    onHello?.();
    return this.#use(shell);
  }

  #reporterOf(sandbox: Sandbox): (message: string) => void {
    return (message) => this.#deps.logger.warn({ ...sandboxFields(sandbox), message }, 'keeper.reported');
  }

  /** Uses a connection from now on. */
  #use(shell: Shell): ShellHello {
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
