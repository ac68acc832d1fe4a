import {
  type Adopted,
  adopt,
  announce,
  type Entry,
  type Fenced,
  type Finished,
  grant,
  type Owner,
  peek,
  release,
  rerun,
  type Sealer,
  type Taken,
  take,
} from '@shellfleet/mailbox';
import {
  ATTRIBUTES,
  type AttachQuestion,
  type EventType,
  ensureShellfleetError,
  type FleetKeys,
  type HostAnswer,
  type ResolvedSessionSpec,
  type SessionKeys,
  ShellfleetError,
  sessionKeys,
} from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { HostLog } from '../host-log/host-log.ts';
import { ALIVE_MS } from '../lease/heartbeat.ts';
import type { Lease, Leases } from '../lease/leases.ts';
import { untilAnswered } from '../patience.ts';
import type { SessionJob, SessionJobs } from '../queue/session-jobs.ts';
import { createLateClean, LateOutput } from '../run/late-output.ts';
import type { RunDeps } from '../run/run-deps.ts';
import { finishFailed, finishLost, finishOverdue, runEntry } from '../run-command.ts';
import type { Sandbox, Sandboxes } from '../sandbox/sandbox.ts';
import type { BackgroundProcess } from '../shell/shell.ts';
import { SessionTerminals } from '../terminals/session-terminals.ts';
import { describeShell } from './describe-shell.ts';
import type { Gate } from './gate.ts';
import { listBackground } from './list-background.ts';
import { openSpec } from './open-spec.ts';
import { runShutdownCommands } from './prepare-shell.ts';
import { createSessionRedaction, redactLog, type SessionRedaction } from './session-redaction.ts';
import { SessionShell } from './session-shell.ts';
import { createWake } from './wake.ts';

// One session on this host, from its job to its release: an actor that does one thing at a time. The file is long because the steps
// share the actor's state, and are read in the order in which a session goes through them.
//
// A1. It writes the mailbox only as the owner; the first answer `fenced` ends it, and its sandbox.
// A2. Nothing is taken before the shell and its startup commands are ready, nor when the lease may have ended.
// A3. It is given up only through `release`, which the mailbox refuses while it holds anything.
// A4. Taking over, here or from a lost host, begins with `adopt`; what was running is followed, recovered, or said to be lost.

/** How long a lost bell can keep a command waiting. */
const POLL_MS = 5_000;
const LEASE_POLL_MS = 100;
/** An engine that restarts is waited for this long before commands fail. */
const ENGINE_PATIENCE_MS = 20_000;

export interface SessionDeps {
  redis: Redis;
  fleet: FleetKeys;
  hostId: string;
  sealer: Sealer;
  jobs: SessionJobs;
  leases: Leases;
  /** of a lock just taken */
  lockMs: number;
  sandboxes: Sandboxes;
  openGate: Gate;
  hostLog: HostLog;
  logger: Logger;
}

/** What the session becomes when the worker stops: its shell lives on for the next worker, or ends. */
export type Stop = 'hand-over' | 'end';

export class Session {
  readonly job: SessionJob;
  readonly #deps: SessionDeps;
  readonly #keys: SessionKeys;
  #logger: Logger;
  /** Of the spec, once that is known. */
  #redaction: SessionRedaction | undefined;
  readonly #wake = createWake();
  readonly #fenced = new AbortController();
  /** Nobody waits any more for the shell that is being opened. */
  readonly #unwanted = new AbortController();
  readonly #cancelled = new Set<string>();
  #stop: Stop | undefined;
  #closing = false;
  #running: { entryId: string; stop(): void } | undefined;
  #inputBell: (() => void) | undefined;
  #shell: SessionShell | undefined;
  #terminals: SessionTerminals | undefined;
  #late: LateOutput | undefined;
  #lease: Lease | undefined;
  #saidEpoch = 0;
  #announcedEpoch = 0;
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
    return this.#shell?.ready === true && this.#terminals !== undefined
      ? this.#terminals.open(question)
      : { state: 'no-shell' };
  }

  /** The user of a terminal is there. */
  ringTerminal(id: string): void {
    this.#terminals?.ring(id);
  }

  /** What runs in its sandbox besides the shell; nothing while there is no shell. Throws when there is one that cannot say. */
  async background(): Promise<BackgroundProcess[]> {
    const shell = this.#shell;
    const redaction = this.#redaction;
    if (shell === undefined || redaction === undefined || !shell.hasSandbox || shell.death !== undefined) return [];
    return listBackground(shell.turns.shell, redaction, this.#fenced.signal);
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
    this.#lease = lease;
    try {
      await this.#serveUnder(lease, found);
      return 'ended';
    } catch (err) {
      this.#logger.error({ err }, 'session.failed');
      await this.#shell?.discard();
      return 'failed';
    } finally {
      // A shell that is handed over keeps its lease until this process is gone.
      if (this.#stop !== 'hand-over') lease.end();
    }
  }

  async #serveUnder(lease: Lease, found: Sandbox | undefined): Promise<void> {
    const owner = await this.#becomeOwner();
    if (owner === undefined) return found?.remove();
    const adopted = await untilAnswered(() => adopt(owner), this.#fenced.signal);
    if (adopted.type !== 'adopted') {
      await found?.remove();
      if (adopted.type === 'closed') await untilAnswered(() => this.#deps.jobs.remove(this.job), this.#fenced.signal);
      return;
    }
    const spec = openSpec(adopted.spec, this.#keys, this.#deps.sealer);
    const redaction = createSessionRedaction(spec, this.#keys, this.#deps.sealer);
    this.#redaction = redaction;
    this.#logger = redactLog(this.#logger, redaction);
    if (redaction.warnings.length > 0) this.#logger.warn({ warnings: redaction.warnings }, 'redaction.warnings');
    lease.own(owner.fence, ALIVE_MS + spec.hostGraceMs);
    this.#saidEpoch = adopted.saidEpoch;
    this.#announcedEpoch = adopted.epoch;
    this.#closing ||= adopted.life === 'closing';
    const terminals = new SessionTerminals({
      owner,
      sealer: this.#deps.sealer,
      signal: this.#fenced.signal,
      logger: this.#logger,
      env: { ...spec.env, ...spec.secrets },
      output: {
        createStage: (before) => redaction.createRedactor({ before }),
        secrets: Object.values(spec.secrets),
      },
      onFenced: () => this.#onFenced(),
    });
    this.#terminals = terminals;
    const late = new LateOutput({
      owner,
      streamBytes: spec.output.streamBytes,
      createClean: (streamBytes) => createLateClean(streamBytes, redaction.createRedactor),
      signal: this.#fenced.signal,
      onFenced: () => this.#onFenced(),
      logger: this.#logger,
    });
    this.#late = late;
    const shell = new SessionShell(
      {
        ref: { namespace: this.#keys.namespace, tenant: this.#keys.tenant, session: this.#keys.session },
        spec,
        redaction,
        fence: owner.fence,
        sandboxes: this.#deps.sandboxes,
        openGate: this.#deps.openGate,
        late,
        logger: this.#logger,
        onGone: () => this.#wake.ring('shell-gone'),
        onConnected: (shellTerminals) => terminals.connect(shellTerminals),
      },
      adopted.epoch,
    );
    this.#shell = shell;
    const run = this.#toRunDeps(owner, spec, redaction, shell, lease);
    const next = await this.#takeOver(adopted, found, run);
    await this.#loop(next, run, lease);
  }

  async #becomeOwner(): Promise<Owner | undefined> {
    const { redis, fleet, hostId, lockMs } = this.#deps;
    const granted = await untilAnswered(() => grant(redis, fleet, this.job, hostId, lockMs), this.#fenced.signal);
    if (granted.type === 'refused') {
      this.#logger.warn({ holder: granted.holder }, 'lease.refused');
      return undefined;
    }
    return { redis, keys: this.#keys, fence: granted.fence, host: hostId };
  }

  /** A4: finds out what became of the shell and of what ran on it. Returns what the end of that has started next. */
  async #takeOver(adopted: Adopted, found: Sandbox | undefined, run: RunDeps): Promise<Taken> {
    const { running } = adopted;
    if (running?.cancelReason !== undefined) this.#cancelled.add(running.id);
    const { shell } = adopted;
    if (found !== undefined && found.id === shell?.sandbox && shell.host === run.owner.host) {
      const hello = await run.shell.adopt(found, adopted.epochBase, adopted.preparedEpoch).catch((err: unknown) => {
        this.#logger.warn({ err }, 'session.adoption-failed');
        return undefined;
      });
      if (hello !== undefined) {
        await this.#announce(run, 'session.adopted');
        if (running === undefined) return { type: 'empty' };
        if (hello.entryId === running.id) return this.#run(running, 'resume', run);
        // Started here and never begun: the worker died between the two. Elsewhere it may have run.
        return running.host === run.owner.host ? this.#run(running, 'start', run) : this.#recover(running, run);
      }
      await run.shell.abandon();
    } else {
      // A sandbox whose shell was never ready has run nothing of the mailbox's.
      await found?.remove();
    }
    const hostLost = shell !== undefined && shell.host !== run.owner.host;
    if (adopted.epoch > 0 && (hostLost || running !== undefined)) {
      const data = {
        reason: hostLost ? 'host-lost' : 'container-removed',
        hostId: shell?.host ?? adopted.previousHost,
      };
      await this.#say(run, 'starting', 'session.lost', data);
    }
    // What waits is judged after it.
    if (running !== undefined) await this.#recover(running, { ...run, mayTakeNext: () => false });
    if (hostLost && adopted.epoch > 0 && run.spec.onHostLoss === 'fail') {
      await this.#failWaiting(
        run,
        new ShellfleetError(
          'SESSION_LOST',
          `Session ${this.#keys.session} was lost with its host ${shell.host} before this command started. Its next command gets a new shell.`,
        ),
        // Whoever submits now may know of the loss already.
        adopted.waiting,
      );
    }
    return { type: 'empty' };
  }

  /** What ran on a shell that is gone: run again only where its submitter said that this is safe. */
  async #recover(entry: Entry, run: RunDeps): Promise<Taken> {
    if (entry.retry === 'idempotent') {
      const again = await untilAnswered(() => rerun(run.owner, entry.id), run.signal);
      if (again.type === 'restarted' && (await this.#makeReady(run))) {
        const offsets = { stdout: 0, stderr: 0 };
        return this.#run({ ...entry, offsets, startedAt: Date.now() }, 'start', run);
      }
    }
    return this.#noteFinished(await finishLost(entry, run), run);
  }

  async #loop(first: Taken, run: RunDeps, lease: Lease): Promise<void> {
    let next = first;
    this.#terminals?.settle();
    for (;;) {
      if (this.#fenced.signal.aborted) return this.#abandon(run);
      if (next.type === 'empty') {
        if (this.#closing) return this.#end(run);
        if (this.#stop === 'hand-over') return this.#leave(run);
        if (this.#stop === 'end') return void (await this.#giveUp(run, 'the host was shut down'));
        if (lease.held() && !this.#looked) next = await this.#takeWhenReady(run);
      }
      switch (next.type) {
        case 'empty': {
          const why = this.#whyEnd(run);
          if (why !== undefined && (await this.#giveUp(run, why)) !== undefined) return;
          // Not given up because something waits: then only the lease can be what is waited for.
          const rests = why === undefined && lease.held();
          await this.#wake.wait(rests ? Math.min(POLL_MS, run.spec.idleTimeoutMs) : LEASE_POLL_MS);
          this.#looked = false;
          break;
        }
        case 'overdue':
          next = this.#noteFinished(await finishOverdue(next.entry, run), run);
          break;
        case 'started':
          next = await this.#run(next.entry, 'start', run);
          break;
        // Taken by a call of ours whose reply was lost: the shell knows whether it ever got it.
        case 'running':
          next = await this.#run(next.entry, 'start', run);
          break;
      }
    }
  }

  /** A2: the head of the mailbox, once there is a shell for it. */
  async #takeWhenReady(run: RunDeps): Promise<Taken> {
    if (!run.shell.ready) {
      if ((await untilAnswered(() => peek(run.owner), run.signal)) === undefined) return { type: 'empty' };
      if (!(await this.#makeReady(run))) return { type: 'empty' };
    }
    const taken = await untilAnswered(() => take(run.owner), run.signal);
    // A close whose call was lost is told by the mailbox.
    if (taken.type === 'empty' && taken.closing === true) this.close();
    if (taken.type !== 'fenced') return taken;
    this.#onFenced();
    return { type: 'empty' };
  }

  /** Opens and prepares the shell. When that fails, what waits is told why. */
  async #makeReady(run: RunDeps): Promise<boolean> {
    const from = Date.now();
    const signal = AbortSignal.any([run.signal, this.#unwanted.signal]);
    if (!run.shell.hasSandbox) await this.#say(run, 'starting');
    for (;;) {
      try {
        await run.shell.makeReady(signal);
        this.#opened = { from, to: Date.now() };
        if (run.shell.epoch !== this.#announcedEpoch)
          await this.#announce(run, run.shell.epoch === 1 ? 'session.opened' : 'session.restarted');
        else await this.#say(run, 'ready');
        return true;
      } catch (cause) {
        const error = ensureShellfleetError(cause);
        if (run.signal.aborted) return false;
        if (signal.aborted) {
          await run.shell.abandon();
          return false;
        }
        if (error.code === 'DOCKER_UNAVAILABLE' && Date.now() - from < ENGINE_PATIENCE_MS) {
          await new Promise((resolve) => setTimeout(resolve, 1_000));
          continue;
        }
        this.#logger.warn({ err: error }, 'session.start-failed');
        await run.shell.abandon();
        await this.#failWaiting(run, error);
        return false;
      }
    }
  }

  /** Runs one entry and returns what the step that ended it has started next. */
  async #run(entry: Entry, from: 'start' | 'resume', run: RunDeps): Promise<Taken> {
    const finished = await runEntry(entry, from, run);
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

  async #failWaiting(run: RunDeps, error: ShellfleetError, most = Number.POSITIVE_INFINITY): Promise<void> {
    for (let failed = 0; failed < most; failed += 1) {
      const head = await untilAnswered(() => peek(run.owner), run.signal);
      if (head === undefined) return;
      const finished = await finishFailed(head, error, { ...run, mayTakeNext: () => false });
      if (finished.type === 'fenced') return this.#onFenced();
    }
  }

  /** Why an idle session is given up, if it is. */
  #whyEnd({ shell, spec }: RunDeps): string | undefined {
    if (!shell.hasSandbox) return 'nothing waits';
    if (shell.death !== undefined || !shell.turns.connected) return 'its container is gone';
    const now = Date.now();
    if (this.#terminals !== undefined && this.#terminals.count > 0) this.#activeAt = now;
    if (now - this.#activeAt >= spec.idleTimeoutMs) return `it was idle for ${spec.idleTimeoutMs} ms`;
    return now - shell.openedAt >= spec.maxLifetimeMs
      ? `it reached its lifetime of ${spec.maxLifetimeMs} ms`
      : undefined;
  }

  /** A3. Returns undefined when something was submitted meanwhile: the session goes on. */
  async #giveUp(run: RunDeps, why: string): Promise<'given-up' | undefined> {
    const hadShell = run.shell.hasSandbox;
    if (hadShell && (await untilAnswered(() => peek(run.owner), run.signal)) !== undefined && this.#stop === undefined)
      return undefined;
    if (hadShell) await this.#endShell(run);
    const event = hadShell ? { type: 'session.lost' as const, data: { reason: why } } : undefined;
    const released = await untilAnswered(() => release(run.owner, hadShell ? 'lost' : 'queued', event), run.signal);
    if (released.type === 'busy' && this.#stop === undefined) return undefined;
    this.#logger.info({ reason: why }, 'session.released');
    await this.#removeJob(run);
    return 'given-up';
  }

  /** Ends a closing session: shutdown commands, shell, sandbox, slot. */
  async #end(run: RunDeps): Promise<void> {
    await this.#endShell(run);
    await untilAnswered(() => release(run.owner, 'queued'), run.signal);
    this.#logger.info('session.closed');
    await this.#removeJob(run);
  }

  /** In order: whoever gave shutdown commands counts on them whenever the fleet ends a shell, not only when a caller closes the session. */
  async #endShell({ shell, spec, redaction }: RunDeps): Promise<void> {
    // Of one that died its users are told that it is lost.
    if (shell.ready) await this.#terminals?.hangUp();
    if (shell.ready) {
      for (const problem of await runShutdownCommands(shell.turns, spec, redaction))
        this.#logger.warn({ problem }, 'session.shutdown-command-failed');
    }
    await shell.end(spec.terminationTimeoutMs);
    await this.#late?.end();
  }

  /** The job goes first, then a second look: a submit in between has found an owner, and adds no job itself. */
  async #removeJob(run: RunDeps): Promise<void> {
    const { jobs } = this.#deps;
    // A renewal behind this would lock a job that is gone.
    this.#lease?.end();
    await untilAnswered(() => jobs.remove(this.job), run.signal);
    const head = await untilAnswered(() => peek(run.owner), run.signal);
    if (head !== undefined) await untilAnswered(() => jobs.ensure(this.job, run.spec.priority), run.signal);
  }

  /** The shell lives on for the next owner. */
  async #leave({ shell }: RunDeps): Promise<void> {
    shell.leave();
    await this.#late?.end();
  }

  /** A1: another host owns the session. Our shell must not go on beside its. */
  async #abandon(run: RunDeps): Promise<void> {
    this.#logger.warn({ [ATTRIBUTES.fence]: run.owner.fence }, 'lease.lost');
    await run.shell.abandon();
  }

  /** A1: at once, whatever runs. */
  #onFenced(): void {
    if (this.#fenced.signal.aborted) return;
    this.#fenced.abort();
    void this.#shell?.discard();
    this.#wake.ring('fenced');
  }

  #announce(run: RunDeps, type: EventType): Promise<void> {
    const { epoch } = run.shell;
    this.#announcedEpoch = epoch;
    this.#logger.info({ epoch }, type);
    return this.#say(run, run.shell.ready ? 'ready' : 'starting', type, { hostId: run.owner.host, epoch });
  }

  async #say(
    run: RunDeps,
    status: 'starting' | 'ready',
    type?: EventType,
    data: Record<string, unknown> = {},
  ): Promise<void> {
    const { epoch, epochBase } = run.shell;
    const event = type === undefined ? undefined : { type, data: run.redaction.value(data) };
    const shell = { epoch, epochBase, status, sandbox: status === 'ready' ? (run.shell.sandboxId ?? '') : '' };
    const said = await untilAnswered(() => announce(run.owner, shell, event), run.signal);
    if (said.type === 'fenced') this.#onFenced();
  }

  #toRunDeps(
    owner: Owner,
    spec: ResolvedSessionSpec,
    redaction: SessionRedaction,
    shell: SessionShell,
    lease: Lease,
  ): RunDeps {
    return {
      owner,
      spec,
      redaction,
      shell,
      sealer: this.#deps.sealer,
      hostLog: this.#deps.hostLog,
      logger: this.#logger,
      signal: this.#fenced.signal,
      opened: () => this.#opened,
      isCancelled: (entryId) => this.#cancelled.has(entryId),
      onTurn: (entryId, stop) => {
        this.#running = { entryId, stop };
      },
      onInputBell: (ring) => {
        this.#inputBell = ring;
      },
      describeShell: (end) => describeShell(shell, this.#saidEpoch, end),
      mayTakeNext: () => {
        this.#looked =
          lease.held() && shell.ready && !this.#closing && this.#stop === undefined && !this.#fenced.signal.aborted;
        return this.#looked;
      },
    };
  }
}
