import { differences, type SessionJob, toPlacement } from '@shellfleet/admission';
import {
  adopt,
  type Entry,
  type Fenced,
  type Finished,
  type Owner,
  peek,
  retryWhileRedisIsDown,
  type Taken,
  take,
} from '@shellfleet/mailbox';
import { ATTRIBUTES, type AttachQuestion, type HostAnswer, type SessionKeys, sessionKeys } from '@shellfleet/protocol';
import type { Logger } from 'pino';
import { ALIVE_MS } from '../lease/heartbeat.ts';
import type { Lease } from '../lease/leases.ts';
import { finishOverdue, runEntry } from '../run/run-command.ts';
import type { RunDeps } from '../run/run-deps.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { BackgroundProcess } from '../shell/shell.ts';
import { abandon, endClosing, giveUp, handOver, leaveToOthers } from './end-session.ts';
import { listBackground } from './list-background.ts';
import { makeReady } from './make-ready.ts';
import { heldInOtherClass, refuse } from './refuse-session.ts';
import { createServedSession, type ServedSession, type SessionActor, type SessionDeps } from './served-session.ts';
import { takeOver } from './take-over.ts';
import { createWake } from './wake.ts';

// One session on this host, from its job to its release: an actor that does one thing at a time. Its state is here alone; how it takes
// over, gets its shell ready, says so and ends are steps in files of their own.
//
// A1. It writes the mailbox only as the owner; the first answer `fenced` ends it, and its sandbox.
// A2. Nothing is taken before the shell and its startup commands are ready, nor when the lease may have ended.
// A3. It is given up only through `release`, which the mailbox refuses while it holds anything.
// A4. Taking over, here or from a lost host, begins with `adopt`; what was running is followed, recovered, or said to be lost.

/** How long a lost bell can keep a command waiting. */
const POLL_MS = 5_000;
const LEASE_POLL_MS = 100;

/** What the session becomes when the worker stops: its shell lives on for the next worker, or ends. */
export type Stop = 'hand-over' | 'end';

export class Session {
  readonly job: SessionJob;
  readonly #deps: SessionDeps;
  readonly #keys: SessionKeys;
  #logger: Logger;
  readonly #wake = createWake();
  readonly #fenced = new AbortController();
  /** Nobody waits any more for the shell that is being opened. */
  readonly #unwanted = new AbortController();
  readonly #cancelled = new Set<string>();
  #stop: Stop | undefined;
  #closing = false;
  #running: { entryId: string; stop(): void } | undefined;
  #inputBell: (() => void) | undefined;
  /** Since this host has adopted it. */
  #served: ServedSession | undefined;
  #saidEpoch = 0;
  #opened = { from: 0, to: 0 };
  #activeAt = Date.now();
  /** The step that ended the last entry has found nothing more, and nobody has rung since. */
  #looked = false;

  constructor(job: SessionJob, deps: SessionDeps) {
    this.job = job;
    this.#deps = deps;
    this.#keys = sessionKeys(deps.fleet.namespace, job.tenant, job.session);
    this.#logger = deps.logger.child({ [ATTRIBUTES.sessionId]: job.session });
  }

  /** Something was submitted. */
  ring(): void {
    this.#wake.ring('bell');
  }

  /** Something was written to the stdin of what runs. */
  ringInput(): void {
    this.#inputBell?.();
  }

  /** A caller cancels an entry that runs, or is about to. */
  cancel(entryId: string): void {
    this.#cancelled.add(entryId);
    if (this.#running?.entryId === entryId) this.#running.stop();
  }

  /** The session is closing: what runs is stopped, and the rest ends it. */
  close(): void {
    this.#closing = true;
    this.#unwanted.abort();
    if (this.#running !== undefined) this.cancel(this.#running.entryId);
    this.#wake.ring('closing');
  }

  /** Opens a terminal, which then goes on beside the mailbox. */
  async attach(question: AttachQuestion): Promise<HostAnswer<'attach'>> {
    return this.#served?.shell.ready === true ? this.#served.terminals.open(question) : { state: 'no-shell' };
  }

  /** The user of a terminal is there. */
  ringTerminal(id: string): void {
    this.#served?.terminals.ring(id);
  }

  /** What runs in its sandbox besides the shell; nothing while there is no shell. Throws when there is one that cannot say. */
  async background(): Promise<BackgroundProcess[]> {
    if (this.#served === undefined) return [];
    const { shell, redaction, signal } = this.#served;
    return shell.hasSandbox && shell.death === undefined ? listBackground(shell.turns.shell, redaction, signal) : [];
  }

  /** The worker stops. What runs goes on for the next worker, or is cancelled. */
  stop(how: Stop): void {
    this.#stop = how;
    if (how === 'end') this.#unwanted.abort();
    if (how === 'end' && this.#running !== undefined) this.cancel(this.#running.entryId);
    this.#wake.ring('draining');
  }

  /** Nothing of the mailbox runs here now. */
  get idle(): boolean {
    return this.#running === undefined;
  }

  /**
   * Serves the session until it is given up. `found`: its sandbox, alive from before. Never rejects: `failed` means that it could
   * not go on, and what ran here was ended.
   */
  async serve(found: Sandbox | undefined): Promise<'ended' | 'failed'> {
    const lease = this.#deps.leases.add(this.job, this.#deps.lockMs, () => this.#onFenced());
    try {
      await this.#serveUnder(lease, found);
      return 'ended';
    } catch (err) {
      this.#logger.error({ err }, 'session.failed');
      await this.#served?.shell.discard();
      return 'failed';
    } finally {
      // A shell that is handed over keeps its lease until this process is gone.
      if (this.#stop !== 'hand-over') lease.end();
    }
  }

  async #serveUnder(lease: Lease, found: Sandbox | undefined): Promise<void> {
    const owner = await this.#becomeOwner();
    if (owner === undefined) return found?.remove();
    const adopted = await retryWhileRedisIsDown(
      () => adopt(owner, { placementClass: this.job.placementClass, generation: this.job.data?.generation }),
      this.#fenced.signal,
    );
    if (adopted.type !== 'adopted') {
      await found?.remove();
      if (adopted.type !== 'fenced')
        await retryWhileRedisIsDown(() => this.#deps.jobs.remove(this.job), this.#fenced.signal);
      return;
    }
    const deps = { ...this.#deps, logger: this.#logger };
    const served = createServedSession(this.job, adopted, owner, lease, this.#toActor(), deps);
    this.#served = served;
    this.#logger = served.logger;
    lease.own(owner.fence, ALIVE_MS + served.spec.hostGraceMs);
    this.#saidEpoch = adopted.saidEpoch;
    this.#closing ||= adopted.life === 'closing';
    if (adopted.running?.cancelReason !== undefined) this.#cancelled.add(adopted.running.id);
    const differing = differences(this.job, adopted.generation, toPlacement(served.spec));
    if (differing.length > 0) return refuse(differing, adopted, found, served);
    const next = await takeOver(adopted, found, served, {
      makeReady: () => this.#makeReady(served),
      run: (entry, from, run) => this.#run(entry, from, run),
      noteFinished: (finished) => this.#noteFinished(finished, served),
    });
    served.terminals.settle();
    if (!this.#deps.offers.includes(this.job.placementClass)) return leaveToOthers(served);
    await this.#loop(next, served);
  }

  async #becomeOwner(): Promise<Owner | undefined> {
    const { redis, hostId, jobs } = this.#deps;
    const granted = await retryWhileRedisIsDown(() => jobs.grant(this.job), this.#fenced.signal);
    if (granted.type === 'held-in-other-class') throw heldInOtherClass(this.job, granted.holder);
    if (granted.type !== 'granted') {
      this.#logger.warn({ holder: granted.holder }, 'lease.refused');
      return undefined;
    }
    return { redis, keys: this.#keys, fence: granted.fence, host: hostId };
  }

  async #loop(first: Taken, served: ServedSession): Promise<void> {
    const { lease } = served;
    let next = first;
    for (;;) {
      if (this.#fenced.signal.aborted) return abandon(served);
      if (next.type === 'empty') {
        if (this.#closing) return endClosing(served);
        if (this.#stop === 'hand-over') return handOver(served);
        if (this.#stop === 'end') return void (await giveUp(served, 'the host was shut down'));
        if (lease.held() && !this.#looked) next = await this.#takeWhenReady(served);
      }
      switch (next.type) {
        case 'empty': {
          const why = this.#whyEnd(served);
          if (why !== undefined && (await giveUp(served, why))) return;
          // Not given up because something waits: then only the lease can be what is waited for.
          const rests = why === undefined && lease.held();
          await this.#wake.wait(rests ? Math.min(POLL_MS, served.spec.idleTimeoutMs) : LEASE_POLL_MS);
          this.#looked = false;
          break;
        }
        case 'overdue':
          next = this.#noteFinished(await finishOverdue(next.entry, served), served);
          break;
        case 'started':
          next = await this.#run(next.entry, 'start', served);
          break;
        // Taken by a call of ours whose reply was lost: the shell knows whether it ever got it.
        case 'running':
          next = await this.#run(next.entry, 'start', served);
          break;
      }
    }
  }

  /** A2: the head of the mailbox, once there is a shell for it. */
  async #takeWhenReady(served: ServedSession): Promise<Taken> {
    const { owner, shell, signal } = served;
    if (!shell.ready) {
      if ((await retryWhileRedisIsDown(() => peek(owner), signal)) === undefined) return { type: 'empty' };
      if (!(await this.#makeReady(served))) return { type: 'empty' };
    }
    const taken = await retryWhileRedisIsDown(() => take(owner), signal);
    // A close whose call was lost is told by the mailbox.
    if (taken.type === 'empty' && taken.closing === true) this.close();
    if (taken.type !== 'fenced') return taken;
    this.#onFenced();
    return { type: 'empty' };
  }

  async #makeReady(served: ServedSession): Promise<boolean> {
    const opened = await makeReady(served);
    if (opened !== undefined) this.#opened = opened;
    return opened !== undefined;
  }

  /** Runs one entry and returns what the step that ended it has started next. */
  async #run(entry: Entry, from: 'start' | 'resume', run: RunDeps): Promise<Taken> {
    const finished = await this.#deps.running.during(entry.id, () => runEntry(entry, from, run));
    this.#running = undefined;
    this.#cancelled.delete(entry.id);
    return this.#noteFinished(finished, run);
  }

  #noteFinished(finished: Finished | Fenced, run: RunDeps): Taken {
    this.#activeAt = Date.now();
    if (finished.type === 'finished') {
      this.#saidEpoch = run.shell.epoch;
      return finished.next;
    }
    if (finished.type === 'fenced') this.#onFenced();
    return { type: 'empty' };
  }

  /** Why an idle session is given up, if it is. */
  #whyEnd({ shell, spec, terminals }: ServedSession): string | undefined {
    if (!shell.hasSandbox) return 'nothing waits';
    if (shell.death !== undefined || !shell.turns.connected) return 'its container is gone';
    const now = Date.now();
    if (terminals.count > 0) this.#activeAt = now;
    if (now - this.#activeAt >= spec.idleTimeoutMs) return `it was idle for ${spec.idleTimeoutMs} ms`;
    return now - shell.openedAt >= spec.maxLifetimeMs
      ? `it reached its lifetime of ${spec.maxLifetimeMs} ms`
      : undefined;
  }

  /** Whether the step that ends an entry may start the next one. */
  #mayTakeNext(): boolean {
    const served = this.#served;
    const isHeld = served?.lease.held() === true && served.shell.ready;
    this.#looked = isHeld && !this.#closing && this.#stop === undefined && !this.#fenced.signal.aborted;
    return this.#looked;
  }

  /** A1: at once, whatever runs. */
  #onFenced(): void {
    if (this.#fenced.signal.aborted) return;
    this.#fenced.abort();
    void this.#served?.shell.discard();
    this.#wake.ring('fenced');
  }

  #toActor(): SessionActor {
    return {
      signal: this.#fenced.signal,
      unwanted: this.#unwanted.signal,
      opened: () => this.#opened,
      saidEpoch: () => this.#saidEpoch,
      isCancelled: (entryId) => this.#cancelled.has(entryId),
      isStopping: () => this.#stop !== undefined,
      onTurn: (entryId, stop) => {
        this.#running = { entryId, stop };
      },
      onInputBell: (ring) => {
        this.#inputBell = ring;
      },
      mayTakeNext: () => this.#mayTakeNext(),
      onShellGone: () => this.#wake.ring('shell-gone'),
      onFenced: () => this.#onFenced(),
    };
  }
}
