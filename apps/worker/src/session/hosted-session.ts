import type { Adopted, Entry, Fenced } from '@shellfleet/mailbox';
import { differences, type SessionJob } from '@shellfleet/placement';
import { ATTRIBUTES, type CarriedEntry, type HostReply } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { firstLockMs, isMovableClass, type Lease } from '../lease/leases.ts';
import { untilHeld } from '../lease/until-held.ts';
import { askedToCancel, askedToClose } from '../run/asked-requests.ts';
import { EntryRun } from '../run/entry-run.ts';
import type { EntryFinished } from '../run/finish-entry.ts';
import type { SessionHost } from '../run/host-services.ts';
import { finishNotAgain, runEntry } from '../run/run-entry.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { admitEntry } from './admit-entry.ts';
import { adoptRunning } from './adopt-running.ts';
import { adoptSession } from './adopt-session.ts';
import { declareSession } from './declare-session.ts';
import {
  abandon,
  endClosing,
  giveUp,
  handOver,
  leaveFailed,
  leaveInQueue,
  leaveToOthers,
  moveOn,
  waitOrGiveUp,
} from './end-session.ts';
import { failWaiting } from './fail-waiting.ts';
import { findShell } from './find-shell.ts';
import { Hosting, type Stop } from './hosting.ts';
import { backgroundOf } from './list-background.ts';
import { makeReady } from './make-ready.ts';
import { refuseSession } from './refuse-session.ts';
import type { SessionParts } from './session-parts.ts';
import { startAgain } from './start-again.ts';
import { classifyTaken, startEntry } from './start-entry.ts';
import { LEFT, LOOK, type Step, toStep, toStepAfter, WAIT } from './step.ts';
import { takeHead } from './take-head.ts';

// One session on this host, from its job to its release. A loop executes steps, each of which returns the next one.
// SESSION-1. The host writes the mailbox only as the owner. The first reply `fenced` ends the session and its sandbox.
// SESSION-2. No entry is taken before the shell and its startup commands are ready. None is taken or given to the shell
//            when the lease may have run out.
// SESSION-3. A session is given up only through `release`, which the mailbox refuses while entries wait.
// SESSION-4. An adoption, on this host or from a lost one, begins with `adopt`. A running entry is then resumed, run
//            again or reported lost.
// SESSION-5. While the host takes nothing new, a session without a living shell is left to another host.
// SESSION-6. A shell that any worker can reach is left as it is when the worker stops or has lost the session. What
//            runs there continues, and nothing that this host sees of it from then on is stored.

export class HostedSession {
  readonly job: SessionJob;
  readonly #host: SessionHost;
  readonly #hosting = new Hosting();
  /** The parts that exist once this host has adopted the session. */
  #parts: SessionParts | undefined;

  constructor(job: SessionJob, host: SessionHost) {
    this.job = job;
    this.#host = {
      ...host,
      logger: host.logger.child({ [ATTRIBUTES.tenant]: job.tenant, [ATTRIBUTES.sessionId]: job.session }),
    };
  }

  /** Reports that something was submitted, perhaps `entry`, or that the host's admission has changed. */
  wakeUp(entry?: CarriedEntry): void {
    if (entry !== undefined) this.#parts?.context.delegation.bring(entry);
    this.#hosting.wakeUps.notify();
  }

  /** Resolves when the session first finds or opens a shell, runs an entry or waits. */
  get begun(): Promise<void> {
    return this.#hosting.begun;
  }

  get running(): EntryRun | undefined {
    const { activity } = this.#hosting;
    return activity.type === 'runs' ? activity.run : undefined;
  }

  /** Whether the session has a shell, and its next entry waits for an approval. */
  get asks(): boolean {
    const { activity } = this.#hosting;
    return activity.type === 'waits' && activity.asks;
  }

  /** Whether the session has a sandbox, or is about to have one that is no pool's. */
  get usesSandbox(): boolean {
    return this.#parts?.shell.usesSandbox === true;
  }

  /** Reports that something was typed at a terminal, or that its output was read. */
  wakeTerminal(id: string): void {
    this.#parts?.terminals.wakeUp(id);
  }

  /** Cancels an entry of a generation, even if it has not started yet. */
  cancel(generation: string, entryId: string): void {
    if (this.#parts === undefined || this.#serves(generation)) this.#hosting.cancel(entryId);
  }

  /** Closes a generation, even before it is adopted. `if-asked` first checks that a producer has closed it. */
  closeGeneration(generation: string, how: 'now' | 'if-asked' = 'now'): void {
    if (how === 'now') this.#hosting.cancel(generation);
    if (!this.#serves(generation)) return;
    if (how === 'now') this.#hosting.close();
    // Checked also while an entry runs, since the closing caller waits for the end of the entry.
    else if (this.#parts !== undefined) void this.#closeIfAsked(this.#parts).catch(() => {});
  }

  /** Stops the session with its worker. `hand-over` leaves the running entry to the next worker, `end` cancels it. */
  stop(how: Stop): void {
    this.#hosting.stop(how);
    if (how !== 'hand-over') return;
    this.#moveIfHandedOver();
    this.drain();
  }

  /** Leaves a shell that any worker can reach, with the entry that runs there, while the worker stops (SESSION-6). */
  #moveIfHandedOver(): void {
    if (this.#parts?.isMovable !== true || this.#hosting.state !== 'handing-over') return;
    const { hasState, isBeingAdopted } = this.#parts.shell;
    if (hasState || isBeingAdopted) this.#hosting.become('moving');
  }

  /** Lets a session without a living shell leave, as the host takes nothing new (SESSION-5). */
  drain(): void {
    const { activity, wakeUps } = this.#hosting;
    if (activity.type === 'opens' && this.#parts?.shell.hasState === false) activity.leaving.abort();
    wakeUps.notify();
  }

  /** Ends the sandbox, whatever runs there, because the worker's grace is over. */
  async discard(): Promise<void> {
    await this.#parts?.shell.discard();
  }

  /** Restores an adopted session in a Redis that came back with other data. */
  async declare(redis: Redis): Promise<void> {
    if (this.#parts === undefined) return;
    await declareSession(this.#parts, this.running, redis);
    this.#parts.context.delegation.forget();
    this.#hosting.wakeUps.notify();
  }

  /** Returns the terminals and file calls of this generation. Undefined when the shell is not ready. */
  besides(generation: string): Pick<SessionParts, 'terminals' | 'files'> | undefined {
    return this.#serves(generation) && this.#parts?.shell.ready === true ? this.#parts : undefined;
  }

  /** Replies to a request about its background processes. Rejects when the keeper does not answer. */
  async background(): Promise<HostReply<'background'>> {
    return this.#parts === undefined ? { processes: [] } : backgroundOf(this.#parts.context);
  }

  /** Serves the session until it is given up. Never rejects: `failed` means that it could not continue here. */
  async serve(found: Sandbox | undefined): Promise<'ended' | 'failed'> {
    const lease = this.#host.leases.add(this.job, firstLockMs(this.job.placementClass), () =>
      this.#hosting.become('fenced'),
    );
    try {
      await this.#serveUnder(lease, found);
      return 'ended';
    } catch (err) {
      (this.#parts?.context ?? this.#host).logger.error({ err }, 'session.failed');
      if (this.#parts !== undefined) await leaveFailed(this.#parts);
      return 'failed';
    } finally {
      // A shell that only the next process of this worker can reach keeps its lease until this process has ended.
      if (this.#hosting.state !== 'handing-over' || isMovableClass(this.job.placementClass)) lease.end();
    }
  }

  async #serveUnder(lease: Lease, found: Sandbox | undefined): Promise<void> {
    const hosting = this.#hosting;
    const owned = await adoptSession(this.job, found, lease, hosting, this.#host);
    if (owned === undefined) return;
    const { adopted, parts, isOffered } = owned;
    const { context, isMovable } = parts;
    this.#parts = parts;
    const onLost = () => (isMovable ? parts.shell.leave() : void parts.shell.discard());
    hosting.lost.addEventListener('abort', onLost, { once: true });
    if (hosting.isCancelled(context.generation) || (adopted.phase === 'closing' && (await askedToClose(context))))
      hosting.become('closing');
    const { id = '', cancelReason } = adopted.running ?? {};
    if (cancelReason !== undefined && (await askedToCancel(id, cancelReason, context)) !== undefined)
      hosting.cancel(id);
    const sandbox = isMovable ? await this.#find(adopted, parts) : found;
    if (isMovable && hosting.lost.aborted) return this.#loop(LOOK, parts);
    const differing = differences(this.job, adopted.generation, parts.placement);
    if (differing.length > 0) return refuseSession(differing, adopted, sandbox, parts);
    const { isAdopted, failing, ...taken } = await adoptRunning(adopted, sandbox, parts);
    if (isAdopted && isOffered) hosting.become('serving');
    this.#moveIfHandedOver();
    let { next } = taken;
    // The entry that ran ends before this host serves the session, or leaves it to others.
    while (hosting.state !== 'serving' && next.type !== 'look') next = await this.#execute(next, parts);
    if (failing !== undefined) await failWaiting(parts, failing.error, failing.most);
    parts.terminals.settle();
    if (!isOffered && !hosting.lost.aborted) return leaveToOthers(parts);
    hosting.become('serving');
    await this.#loop(next, parts);
  }

  /** Finds the living shell. That counts as begun, so that the worker takes further sessions meanwhile (GATE-3). */
  #find(adopted: Adopted, parts: SessionParts): Promise<Sandbox | undefined> {
    const find = () => findShell(adopted, parts, this.#host.sandboxes);
    return adopted.shell === undefined ? find() : this.#hosting.during({ type: 'finds' }, find);
  }

  /** Executes one step after another until the session has ended here. */
  async #loop(first: Step, parts: SessionParts): Promise<void> {
    let next = first;
    while (next.type !== 'left') {
      if (this.#hosting.state === 'fenced') return abandon(parts);
      if (this.#hosting.state === 'moving') return moveOn(parts);
      next = await this.#execute(next, parts);
    }
  }

  async #execute(step: Step, parts: SessionParts): Promise<Step> {
    const { context } = parts;
    this.#moveIfHandedOver();
    // What became of an entry on a shell that was left is for the next owner to find out.
    if (parts.isMovable && this.#hosting.lost.aborted) return LOOK;
    switch (step.type) {
      case 'look':
        return (await this.#beforeTaking(parts)) ?? takeHead(parts);
      case 'wait':
        return (await this.#beforeTaking(parts)) ?? waitOrGiveUp(parts);
      case 'check-close':
        await this.#closeIfAsked(parts);
        return LOOK;
      case 'open':
        return (await this.#openForWaiting(step.entry, parts)) ? step.next : WAIT;
      case 'decide':
        return this.#admit(step, parts);
      case 'taken':
        context.delegation.started(step.entry);
        return classifyTaken(step.entry, parts);
      case 'start':
        return startEntry(step, parts);
      case 'run':
        return this.#run(step, parts);
      case 'end':
        return this.#afterEnd(await step.how(step.entry, context), parts);
      case 'left':
        return step;
    }
  }

  /** Returns whether an entry may be taken. `ends`: never again; `not-now`: not while the lease may have ended. */
  #takes({ shell, lease }: SessionParts): 'takes' | 'not-now' | 'ends' {
    if (this.#hosting.state !== 'serving' || !(shell.hasState || this.#host.takesNew())) return 'ends';
    return lease.held() ? 'takes' : 'not-now';
  }

  /** Returns the step for an entry that was brought here, or ends the session. Undefined when it continues. */
  async #beforeTaking(parts: SessionParts): Promise<Step | undefined> {
    const hosting = this.#hosting;
    const how = this.#takes(parts);
    const brought = await parts.context.delegation.next(how, parts.admission.digest !== '');
    if (brought.type !== 'empty' || brought.closing === true) return toStep(brought, LOOK);
    // The next step handles a stop that came in this step: the delegation was withdrawn only if this step is to end.
    if (hosting.lost.aborted || (hosting.state !== 'serving' && how !== 'ends')) return LOOK;
    if (hosting.state === 'serving' && (this.#host.takesNew() || parts.shell.hasState)) return undefined;
    await this.#end(parts);
    return LEFT;
  }

  async #end(parts: SessionParts): Promise<void> {
    const { state } = this.#hosting;
    if (state === 'closing') await endClosing(parts);
    else if (state === 'shutting-down') await giveUp(parts, 'the host was shut down', () => true);
    else if (state === 'handing-over' && parts.shell.hasState) await handOver(parts);
    else await leaveInQueue(parts);
  }

  async #admit({ entry, opened }: Extract<Step, { type: 'decide' }>, parts: SessionParts): Promise<Step> {
    const next = await admitEntry(entry, opened, parts);
    this.#hosting.activeAt = performance.now();
    return next;
  }

  async #openForWaiting(entry: Entry, parts: SessionParts): Promise<boolean> {
    if (this.#takes(parts) === 'ends') return false;
    const leaving = new AbortController();
    return this.#hosting.during({ type: 'opens', leaving }, () => makeReady(parts, leaving.signal, entry));
  }

  async #run({ entry, from }: Extract<Step, { type: 'run' }>, parts: SessionParts): Promise<Step> {
    const { context, lease } = parts;
    const hosting = this.#hosting;
    const run = new EntryRun(entry, from, async () => (await makeReady(parts)) && untilHeld(lease, context.signal));
    const finished = await hosting.during({ type: 'runs', run }, () =>
      context.hostEntries.during(entry.id, () => runEntry(run, context)),
    );
    switch (finished.type) {
      case 'put-back':
        return LOOK;
      case 'shell-lost': {
        const { result } = finished;
        return startAgain(entry, (lost, ...of) => finishNotAgain(lost, result, ...of), parts);
      }
      default:
        hosting.forget(entry.id);
        return this.#afterEnd(finished, parts);
    }
  }

  #afterEnd(finished: EntryFinished | Fenced, { shell }: SessionParts): Step {
    this.#hosting.activeAt = performance.now();
    if (finished.type === 'finished') shell.recordReported();
    return toStepAfter(finished);
  }

  #serves(generation: string): boolean {
    return this.#parts?.context.generation === generation;
  }

  /** Closes the session if a producer has closed it, as the mailbox reports. Otherwise reopens its generation. */
  async #closeIfAsked({ context }: SessionParts): Promise<void> {
    const { state, wakeUps } = this.#hosting;
    if ((state === 'starting' || state === 'serving') && (await askedToClose(context))) this.#hosting.close();
    wakeUps.notify();
  }
}
