import { Notifier } from '@shellfleet/concurrency';
import type { Entry, Fenced, Taken } from '@shellfleet/mailbox';
import { differences, type SessionJob } from '@shellfleet/placement';
import { ATTRIBUTES, type CarriedEntry, type SessionKeys, sessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { FIRST_LOCK_MS, type Lease } from '../lease/leases.ts';
import { askedToCancel, askedToClose } from '../run/asked-requests.ts';
import { EntryRun } from '../run/entry-run.ts';
import type { EntryFinished } from '../run/finish-entry.ts';
import type { SessionHost } from '../run/host-services.ts';
import type { LossReason } from '../run/results.ts';
import {
  finishLost,
  finishNeverBegun,
  finishNotAgain,
  finishOverdue,
  finishUnauthorized,
  runEntry,
} from '../run/run-entry.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { BackgroundProcess } from '../shell/shell.ts';
import { admitEntry } from './admit-entry.ts';
import { adoptSession } from './adopt-session.ts';
import { declareSession } from './declare-session.ts';
import { abandon, endClosing, giveUp, handOver, leaveInLine, leaveToOthers } from './end-session.ts';
import { endIfUnused } from './idle-session.ts';
import { judgeStarted, mayRunAgain } from './judge-started.ts';
import { judgeTaken } from './judge-taken.ts';
import { backgroundOf } from './list-background.ts';
import { makeReady } from './make-ready.ts';
import { refuse } from './refuse-session.ts';
import type { SessionParts } from './session-parts.ts';
import { RANK, type SessionState, type Stop } from './session-state.ts';
import { startAgain } from './start-again.ts';
import { takeHead } from './take-head.ts';
import { takeOver } from './take-over.ts';
import { untilHeld } from './until-held.ts';

// One session on this host, from its job to its release. One loop does one step at a time; the steps are in files of their own, the state
// of the session is here alone.
//
// SESSION-1. It writes the mailbox only as the owner; the first reply `fenced` ends it and its sandbox.
// SESSION-2. No entry is taken before the shell and its startup commands are ready. None is taken or given to the shell when the lease may
//            have run out.
// SESSION-3. It is given up only through `release`, which the mailbox refuses while entries wait.
// SESSION-4. Taking over, on this host or from a lost one, begins with `adopt`; a running entry is then resumed, run again or reported lost.
// SESSION-5. While the host takes nothing new, a session without a living shell is left to another host.

export class HostedSession {
  readonly job: SessionJob;
  /** It has a shell, and its next entry waits for an approval. */
  asks = false;
  readonly #host: SessionHost;
  readonly #keys: SessionKeys;
  readonly #logger: Logger;
  /** Ends the wait of an idle session. */
  readonly #wakeUps = new Notifier();
  readonly #fenced = new AbortController();
  /** Aborts the opening of a shell when no entry will run on it. */
  readonly #opening = new AbortController();
  /** Aborts the opening of a shell for entries that can run on another host. */
  #leaving = new AbortController();
  /** Entries that a caller cancelled and that have not ended here. */
  readonly #cancelled = new Set<string>();
  #state: SessionState = 'starting';
  /** The parts that exist once this host has adopted the session. */
  #parts: SessionParts | undefined;
  /** Whether this host still runs what the session asks for. */
  #isOffered = false;
  #run: EntryRun | undefined;
  /** The life that a caller closed; perhaps not the one that this host serves. */
  #closedLife: string | undefined;
  #activeAt = performance.now();
  /** True when the last finish() found the mailbox empty and no wake-up has arrived since: take() can be skipped. */
  #mailboxEmpty = false;
  /** The mailbox has reported that the session is closing. */
  #seemsClosed = false;

  constructor(job: SessionJob, host: SessionHost) {
    this.job = job;
    this.#host = host;
    this.#keys = sessionKeys(host.namespace, job.tenant, job.session);
    this.#logger = host.logger.child({ [ATTRIBUTES.sessionId]: job.session });
  }

  /** Something was submitted, perhaps `entry`, or what the host admits has changed. */
  wakeUp(entry?: CarriedEntry): void {
    if (entry !== undefined) this.#parts?.rest.bring(entry);
    this.#wakeUps.notify();
  }

  /** The entry that runs here. */
  get running(): EntryRun | undefined {
    return this.#run;
  }

  /** Something was typed at a terminal, or its output was read. */
  wakeTerminal(id: string): void {
    this.#parts?.terminals.wakeUp(id);
  }

  /** A caller cancels an entry of a life of the session, which may be about to start. */
  cancel(generation: string, entryId: string): void {
    if (this.#parts === undefined || this.#serves(generation)) this.#cancel(entryId);
  }

  /** A caller closes one life of the session. `if-asked`: if the mailbox says that it may; else the close is taken back. */
  closeLife(generation: string, how: 'now' | 'if-asked' = 'now'): void {
    if (how === 'now') this.#closedLife = generation;
    if (!this.#serves(generation)) return;
    if (how === 'now') this.#close();
    // Also while an entry runs: whoever closes waits for it.
    else if (this.#parts !== undefined) void this.#closeIfAsked(this.#parts).catch(() => {});
  }

  /** The worker stops. `hand-over` leaves the entry that runs to the next worker, `end` cancels it. */
  stop(how: Stop): void {
    this.#become(how === 'end' ? 'shutting-down' : 'handing-over');
    if (how === 'end') this.#stopRunning();
    else this.drain();
  }

  /** SESSION-5: the host takes nothing new from now on. */
  drain(): void {
    if (this.#parts?.shell.hasState === false) this.#leaving.abort();
    this.#wakeUps.notify();
  }

  /** Ends its sandbox, whatever runs there: the worker's grace is over. */
  async discard(): Promise<void> {
    await this.#parts?.shell.discard();
  }

  /** Restores the session in a Redis that came back with other data. Before it is adopted there is nothing to restore. */
  async declare(redis: Redis): Promise<void> {
    if (this.#parts === undefined) return;
    await declareSession(this.#parts, this.#run, redis);
    this.#parts.rest.forget();
    this.#wakeUps.notify();
  }

  /** What works beside the mailbox in this life of the session; undefined when its shell is not ready. */
  besides(generation: string): Pick<SessionParts, 'terminals' | 'files'> | undefined {
    return this.#serves(generation) && this.#parts?.shell.ready === true ? this.#parts : undefined;
  }

  /** The processes in its sandbox besides the shell; none while there is no shell. Rejects when its keeper does not answer. */
  async background(): Promise<BackgroundProcess[]> {
    return this.#parts === undefined ? [] : backgroundOf(this.#parts.shell, this.#parts.context);
  }

  /**
   * Serves the session until it is given up. `found`: its sandbox, when one is alive. Never rejects: `failed` means that the session could
   * not continue here and its sandbox was ended.
   */
  async serve(found: Sandbox | undefined): Promise<'ended' | 'failed'> {
    const lease = this.#host.leases.add(this.job, FIRST_LOCK_MS, () => this.#become('fenced'));
    try {
      await this.#serveUnder(lease, found);
      return 'ended';
    } catch (err) {
      (this.#parts?.context.logger ?? this.#logger).error({ err }, 'session.failed');
      await this.#parts?.shell.discard();
      return 'failed';
    } finally {
      // A shell that is handed over keeps its lease until this process has ended.
      if (this.#state !== 'handing-over') lease.end();
    }
  }

  async #serveUnder(lease: Lease, found: Sandbox | undefined): Promise<void> {
    const { signal } = this.#fenced;
    const host = { ...this.#host, logger: this.#logger };
    const events = { onFenced: () => this.#become('fenced'), onShellGone: () => this.#wakeUps.notify() };
    const owned = await adoptSession(this.job, this.#keys, found, lease, signal, events, host);
    if (owned === undefined) return;
    const { adopted, parts } = owned;
    this.#parts = parts;
    this.#isOffered = owned.isOffered;
    if (this.#serves(this.#closedLife) || (adopted.life === 'closing' && (await askedToClose(parts.context))))
      this.#become('closing');
    const { id = '', cancelReason } = adopted.running ?? {};
    if (cancelReason !== undefined && (await askedToCancel(id, cancelReason, parts.context)) !== undefined)
      this.#cancelled.add(id);
    const differing = differences(this.job, adopted.generation, parts.placement);
    if (differing.length > 0) return refuse(differing, adopted, found, parts);
    const next = await takeOver(adopted, found, parts, {
      serve: () => this.#become('serving'),
      makeReady: () => this.#makeReady(parts, this.#opening.signal),
      mayRun: (entry) => mayRunAgain(entry, parts, this.#host.approvals),
      run: (entry, from) => this.#runEntry(entry, from, parts),
      finishLost: (entry, reason) => this.#finishLost(entry, reason, parts),
    });
    parts.terminals.settle();
    if (!this.#isOffered) return leaveToOthers(parts);
    this.#become('serving');
    await this.#loop(next, parts);
  }

  /** Runs one step after another. Each returns the mailbox's reply, which selects the next. Ends when the session has ended here. */
  async #loop(first: Taken, parts: SessionParts): Promise<void> {
    let next = first;
    let how: 'takes' | 'not-now' | 'ends';
    while (this.#state !== 'fenced') {
      if (this.#seemsClosed) await this.#closeIfAsked(parts);
      switch (next.type) {
        case 'empty':
          how = this.#takes(parts);
          next = this.#checkTaken(await parts.rest.next(how, parts.admission.digest !== ''));
          if (next.type !== 'empty') break;
          // The rest is withdrawn only where the session ends, so a stop during that step is dealt with in the next one.
          if (this.#fenced.signal.aborted || (this.#state !== 'serving' && how !== 'ends')) break;
          if (this.#state !== 'serving') return this.#end(parts);
          if (!this.#host.takesNew() && !parts.shell.hasState) return leaveInLine(parts);
          next = await this.#takeWhenReady(parts);
          if (next.type === 'empty' && (await this.#waitOrGiveUp(parts))) return;
          break;
        case 'overdue':
          next = await this.#finishUnrun(next.entry, finishOverdue, parts);
          break;
        case 'needs-admission':
          next = await this.#admit(next.entry, parts);
          break;
        case 'started':
        // Started by a call whose reply was lost.
        case 'running':
          next = await this.#runTaken(next.entry, parts);
          break;
      }
    }
    await abandon(parts);
  }

  /** `ends`: nothing is started here any more. `not-now`: the lease may have ended. */
  #takes({ shell, lease }: SessionParts): 'takes' | 'not-now' | 'ends' {
    if (this.#state !== 'serving' || !(shell.hasState || this.#host.takesNew())) return 'ends';
    return lease.held() ? 'takes' : 'not-now';
  }

  /** SESSION-2: takes the head of the mailbox when the shell is ready for it. */
  async #takeWhenReady(parts: SessionParts): Promise<Taken> {
    if (this.#mailboxEmpty || !parts.lease.held()) return EMPTY;
    // The host may take sessions again.
    if (this.#leaving.signal.aborted) this.#leaving = new AbortController();
    return this.#checkTaken(await takeHead(parts, () => this.#makeReady(parts)));
  }

  /** Judges the head of the mailbox, and starts it when it is admitted. */
  async #admit(entry: Entry, parts: SessionParts): Promise<Taken> {
    const next = await admitEntry(entry, parts, this.#host.approvals, {
      makeReady: async () => parts.shell.ready || this.#makeReady(parts),
      mayTakeNext: () => this.#mayTakeNext(),
    });
    this.#activeAt = performance.now();
    return this.#checkTaken(next);
  }

  #makeReady(
    parts: SessionParts,
    unwanted = AbortSignal.any([this.#opening.signal, this.#leaving.signal]),
  ): Promise<boolean> {
    return makeReady(parts, unwanted, this.#host.takesNew);
  }

  #checkTaken(taken: Taken | Fenced): Taken {
    // The call that announces a close may have been lost. The mailbox reports the close too.
    if (taken.type === 'empty' && taken.closing === true) this.#seemsClosed = true;
    return taken.type === 'fenced' ? EMPTY : taken;
  }

  /** Runs an entry that the mailbox has started and that no shell of this host has begun, unless the journal knows better. */
  async #runTaken(entry: Entry, parts: SessionParts): Promise<Taken> {
    parts.rest.started(entry);
    const judgement = await judgeTaken(entry, parts);
    if (judgement === 'runs-here') return this.#runEntry(entry, 'resume', parts);
    if (judgement === 'lost') return this.#finishLost(entry, 'begun-before', parts);
    if (judgement === 'replayed') return this.#finishUnrun(entry, finishUnauthorized, parts);
    // It was taken for a shell that has ended since.
    if (parts.shell.ready || (await this.#makeReady(parts, this.#opening.signal)))
      return this.#runEntry(entry, 'start', parts);
    return this.#finishUnrun(entry, finishNeverBegun, parts);
  }

  /** Runs one entry and returns the entry that was started with its end. */
  async #runEntry(entry: Entry, from: 'start' | 'resume', parts: SessionParts): Promise<Taken> {
    const { context, shell } = parts;
    if (from === 'start') {
      if (!(await untilHeld(parts.lease, this.#fenced.signal))) return EMPTY;
      const refused = await judgeStarted(entry, parts, this.#host.approvals);
      if (refused !== undefined) return this.#finishUnrun(entry, refused, parts);
    }
    const run = new EntryRun(entry, from, {
      mayTakeNext: () => this.#mayTakeNext(),
      makeShellReady: async () =>
        (await this.#makeReady(parts, this.#opening.signal)) && untilHeld(parts.lease, this.#fenced.signal),
    });
    this.#run = run;
    if (this.#cancelled.has(entry.id) || ENDS.has(this.#state)) run.cancel();
    const finished = await context.hostEntries.during(entry.id, () => runEntry(run, context, shell));
    this.#run = undefined;
    if (finished.type === 'put-back') return EMPTY;
    if (finished.type === 'shell-lost') {
      const again = await startAgain(entry, context, {
        mayRun: () => mayRunAgain(entry, parts, this.#host.approvals),
        makeReady: () => this.#makeReady(parts, this.#opening.signal),
      });
      if (again !== undefined) return this.#runEntry(again, 'start', parts);
      return this.#finishUnrun(entry, (ending, ...of) => finishNotAgain(ending, finished.result, ...of), parts);
    }
    this.#cancelled.delete(entry.id);
    return this.#recordFinished(finished, shell);
  }

  #finishLost(entry: Entry, reason: LossReason, parts: SessionParts): Promise<Taken> {
    return this.#finishUnrun(entry, (ending, ...of) => finishLost(ending, reason, ...of), parts);
  }

  async #finishUnrun(entry: Entry, finish: typeof finishOverdue, { context, shell }: SessionParts): Promise<Taken> {
    const ending = { entry, mayTakeNext: () => this.#mayTakeNext() };
    return this.#recordFinished(await finish(ending, context, shell), shell);
  }

  #recordFinished(finished: EntryFinished | Fenced, shell: SessionParts['shell']): Taken {
    this.#activeAt = performance.now();
    if (finished.type !== 'finished') return EMPTY;
    shell.recordReported();
    const { next, triedNext } = finished;
    this.#mailboxEmpty = triedNext && next.type === 'empty';
    if (next.type === 'empty' && next.closing === true) this.#seemsClosed = true;
    return next;
  }

  /** Whether the step that ends an entry may start the next one. */
  #mayTakeNext(): boolean {
    const isServed = this.#state === 'serving' && this.#isOffered;
    const mayTake = isServed && this.#parts?.lease.held() === true && this.#parts.shell.ready;
    if (mayTake && this.#parts?.admission.digest === '') this.#parts.rest.mayBegin();
    return mayTake;
  }

  /** An idle session is given up or closed, or waits. Returns whether it was given up. */
  async #waitOrGiveUp(parts: SessionParts): Promise<boolean> {
    if (this.#state !== 'serving') return false;
    if (this.#seemsClosed) return this.#closeIfAsked(parts);
    if (parts.terminals.count > 0) this.#activeAt = performance.now();
    const idle = await endIfUnused(parts, Math.max(this.#activeAt, parts.files.usedAt), () => this.#isStopping());
    if (idle.type === 'given-up') return true;
    if (idle.type === 'closing') this.#close();
    if (idle.type === 'closing-before') this.#seemsClosed = true;
    if (idle.type === 'waits') {
      this.asks = idle.asks;
      await this.#wakeUps.wait({ timeoutMs: idle.timeoutMs });
      this.asks = false;
    }
    this.#mailboxEmpty = false;
    return false;
  }

  async #end(parts: SessionParts): Promise<void> {
    if (this.#state === 'closing') return endClosing(parts);
    if (this.#state === 'handing-over') return parts.shell.hasState ? handOver(parts) : leaveInLine(parts);
    await giveUp(parts, 'the host was shut down', () => true);
  }

  #isStopping(): boolean {
    return this.#state === 'handing-over' || this.#state === 'shutting-down';
  }

  #serves(generation: string | undefined): boolean {
    return this.#parts !== undefined && this.#parts.context.generation === generation;
  }

  /** The mailbox says that a caller has closed the session. Resolves to false. */
  async #closeIfAsked({ context }: SessionParts): Promise<false> {
    this.#seemsClosed = false;
    if (this.#state === 'serving' && (await askedToClose(context))) this.#close();
    this.#mailboxEmpty = false;
    // Its life is open again.
    this.wakeUp();
    return false;
  }

  /** The entry that runs is cancelled. */
  #close(): void {
    this.#become('closing');
    this.#stopRunning();
  }

  #stopRunning(): void {
    this.#opening.abort();
    if (this.#run !== undefined) this.#cancel(this.#run.entry.id);
  }

  #cancel(entryId: string): void {
    this.#cancelled.add(entryId);
    if (this.#run?.entry.id === entryId) this.#run.cancel();
  }

  /** The only writer of the state. */
  #become(state: SessionState): void {
    if (RANK[state] <= RANK[this.#state]) return;
    this.#state = state;
    if (state === 'fenced') {
      // SESSION-1: at once, also while an entry runs.
      this.#fenced.abort();
      void this.#parts?.shell.discard();
    }
    if (state !== 'serving') this.#wakeUps.notify();
  }
}

const EMPTY: Taken = { type: 'empty' };
/** States in which the entry that runs is cancelled. */
const ENDS: ReadonlySet<SessionState> = new Set(['closing', 'shutting-down']);
