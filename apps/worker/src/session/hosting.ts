import { Notifier } from '@shellfleet/concurrency';
import type { EntryRun } from '../run/entry-run.ts';

/** State of a session on this host. In each of them an entry may run. */
export type HostingState =
  /**
   * The host becomes the owner, and adopts the shell and the entry on it. No other entry starts. Ends when the shell is
   * adopted, or with that entry. A session that is no longer offered stays here until it is left to other hosts.
   */
  | 'starting'
  /** Entries start one after another. An idle session is given up. Any of the following states ends this one. */
  | 'serving'
  /** The worker stops and leaves a living shell to its next process. The running entry ends first. */
  | 'handing-over'
  /** The worker stops and ends its shells. The running entry is cancelled, then the session is given up. */
  | 'shutting-down'
  /** A caller closed the session, or its driver is gone. The running entry is cancelled, then the shell ends. */
  | 'closing'
  /**
   * The worker stops, and leaves a shell that any worker can reach, with the entry that runs there. Nothing else is
   * written or ended here.
   */
  | 'moving'
  /**
   * Another host owns the session, or may: nothing is written any more. The sandbox is removed at once, unless the
   * other host can reach it.
   */
  | 'fenced';

/**
 * A session only moves to a state of a higher rank. A close outranks a worker's stop, as the next owner carries it out
 * too, and a lost lease outranks all.
 */
const RANK: Record<HostingState, number> = {
  starting: 0,
  serving: 1,
  'handing-over': 2,
  'shutting-down': 2,
  closing: 3,
  moving: 4,
  fenced: 5,
};

/** Activity of the session's loop, as far as others need it. */
type Activity =
  | { type: 'steps' }
  /** The living shell that another worker may have opened is looked for, however long that takes. */
  | { type: 'finds' }
  /** A shell is opened for a waiting entry. `leaving` aborts that, so that another host can run the entry. */
  | { type: 'opens'; leaving: AbortController }
  | { type: 'runs'; run: EntryRun }
  /** Nothing can be started. `asks` means that the next entry waits for an approval. */
  | { type: 'waits'; asks: boolean };

/** What happens to the session when the worker stops: its shell is left to the next worker, or ended. */
export type Stop = 'hand-over' | 'end';

/** Why a command is cancelled that runs while its host ends its shells. */
const HOST_ENDED = 'the host was shut down';

/** State of a session on this host, and what callers and worker have requested. */
export class Hosting {
  /** Time when the session last had something to do, by `performance.now()`. */
  activeAt = performance.now();
  readonly wakeUps = new Notifier();
  readonly #left = new AbortController();
  readonly #unwanted = new AbortController();
  /** Entries that a caller cancelled and generations that a caller closed, perhaps before the session was adopted. */
  readonly #cancelled = new Set<string>();
  readonly #begun = Promise.withResolvers<void>();
  #state: HostingState = 'starting';
  #activity: Activity = { type: 'steps' };

  get state(): HostingState {
    return this.#state;
  }

  get activity(): Activity {
    return this.#activity;
  }

  /** Resolves with the first activity other than steps. */
  get begun(): Promise<void> {
    return this.#begun.promise;
  }

  /** Aborts when this host has lost the session, or leaves it as it is. */
  get lost(): AbortSignal {
    return this.#left.signal;
  }

  /** Aborts when no entry will run on a shell that is being opened. */
  get unwanted(): AbortSignal {
    return this.#unwanted.signal;
  }

  get isStopping(): boolean {
    return this.#state === 'handing-over' || this.#state === 'shutting-down';
  }

  /** Moves to a state of a higher rank, and ends the wait of an idle session. The only writer of the state. */
  become(state: HostingState): void {
    if (RANK[state] <= RANK[this.#state]) return;
    this.#state = state;
    // Done at once, even while an entry runs (SESSION-1).
    if (state === 'fenced' || state === 'moving') this.#left.abort();
    if (state !== 'serving') this.wakeUps.notify();
  }

  /** Closes the session, and cancels its running entry. */
  close(): void {
    this.become('closing');
    this.#stopRunning();
  }

  /** Stops the session. `hand-over` leaves the running entry to the next worker, `end` cancels it. */
  stop(how: Stop): void {
    this.become(how === 'end' ? 'shutting-down' : 'handing-over');
    if (how === 'end') this.#stopRunning(HOST_ENDED);
  }

  /** Records that a caller has cancelled an entry or closed a generation, and cancels the running entry. */
  cancel(id: string, reason?: string): void {
    this.#cancelled.add(id);
    if (this.#activity.type === 'runs' && this.#activity.run.entry.id === id) this.#activity.run.cancel(reason);
  }

  /** Forgets the cancellation of an entry that has ended. */
  forget(entryId: string): void {
    this.#cancelled.delete(entryId);
  }

  isCancelled(id: string): boolean {
    return this.#cancelled.has(id);
  }

  /** Runs `work`, and shows `activity` to others while it runs. */
  async during<T>(activity: Activity, work: () => Promise<T>): Promise<T> {
    this.#activity = activity;
    this.#begun.resolve();
    if (activity.type === 'runs') this.#cancelIfOver(activity.run);
    return work().finally(() => {
      this.#activity = { type: 'steps' };
    });
  }

  #cancelIfOver(run: EntryRun): void {
    const isOver = this.#state === 'closing' || this.#state === 'shutting-down';
    const isCancelled = this.#cancelled.has(run.entry.id);
    if (isOver || isCancelled) run.cancel(isCancelled || this.#state === 'closing' ? undefined : HOST_ENDED);
  }

  #stopRunning(reason?: string): void {
    this.#unwanted.abort();
    if (this.#activity.type === 'runs') this.cancel(this.#activity.run.entry.id, reason);
  }
}
