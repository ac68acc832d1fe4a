import { Notifier } from '@shellfleet/concurrency';
import type { EntryRun } from '../run/entry-run.ts';

/** Where a session is on this host. In each state an entry may run. */
export type HostingState =
  /**
   * The host becomes the owner, and takes over the shell and the entry that ran on it. No other entry is started. The
   * session leaves this state when its living shell was adopted, or when that entry has ended. A session that the host
   * no longer offers stays in it until it is left to other hosts.
   */
  | 'starting'
  /** Entries are started one after another. An idle session is given up. Any of the following states ends this one. */
  | 'serving'
  /** The worker stops and leaves a living shell to its next process. The entry that runs ends first. */
  | 'handing-over'
  /** The worker stops and ends its shells. The entry that runs is cancelled, then the session is given up. */
  | 'shutting-down'
  /** A caller closed the session, or its driver is gone. The entry that runs is cancelled, then the shell is ended. */
  | 'closing'
  /** Another host owns the session, or may: nothing is written any more, and the sandbox is removed at once. */
  | 'fenced';

/**
 * A session only moves to a state of a higher rank: a close outranks a stop of the worker, a lost lease outranks both.
 */
const RANK: Record<HostingState, number> = {
  starting: 0,
  serving: 1,
  'handing-over': 2,
  'shutting-down': 2,
  closing: 3,
  fenced: 4,
};

/** What the loop of a session is doing, as far as others have to know it. */
type Activity =
  | { type: 'steps' }
  /** A shell is opened for an entry that waits. `leaving` aborts that, so that another host can run the entry. */
  | { type: 'opens'; leaving: AbortController }
  | { type: 'runs'; run: EntryRun }
  /** Nothing can be started. `asks`: the next entry waits for an approval. */
  | { type: 'waits'; asks: boolean };

/** The handling of the session when the worker stops: its shell is left to the next worker, or ended. */
export type Stop = 'hand-over' | 'end';

/** The state of a session on this host, and what its callers and the worker have asked of it. */
export class Hosting {
  /** When the session last had something to do, by `performance.now()`. */
  activeAt = performance.now();
  /** Ends the wait of an idle session. */
  readonly wakeUps = new Notifier();
  readonly #fenced = new AbortController();
  readonly #unwanted = new AbortController();
  /**
   * Entries that a caller cancelled and generations that a caller closed, perhaps before this host has adopted the session.
   */
  readonly #cancelled = new Set<string>();
  #state: HostingState = 'starting';
  #activity: Activity = { type: 'steps' };

  get state(): HostingState {
    return this.#state;
  }

  get activity(): Activity {
    return this.#activity;
  }

  /** Aborts when this host has lost the session. */
  get lost(): AbortSignal {
    return this.#fenced.signal;
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
    // SESSION-1: at once, also while an entry runs.
    if (state === 'fenced') this.#fenced.abort();
    if (state !== 'serving') this.wakeUps.notify();
  }

  /** Closes the session. The entry that runs is cancelled. */
  close(): void {
    this.become('closing');
    this.#stopRunning();
  }

  /** The worker stops. `hand-over` leaves the entry that runs to the next worker, `end` cancels it. */
  stop(how: Stop): void {
    this.become(how === 'end' ? 'shutting-down' : 'handing-over');
    if (how === 'end') this.#stopRunning();
  }

  /** Records that a caller has cancelled an entry or closed a generation. An entry that runs is cancelled. */
  cancel(id: string): void {
    this.#cancelled.add(id);
    if (this.#activity.type === 'runs' && this.#activity.run.entry.id === id) this.#activity.run.cancel();
  }

  /** Forgets the cancellation of an entry that has ended. */
  forget(entryId: string): void {
    this.#cancelled.delete(entryId);
  }

  isCancelled(id: string): boolean {
    return this.#cancelled.has(id);
  }

  /** Runs `work`, while `activity` is what others see. */
  async during<T>(activity: Activity, work: () => Promise<T>): Promise<T> {
    this.#activity = activity;
    if (activity.type === 'runs') this.#cancelIfOver(activity.run);
    return work().finally(() => {
      this.#activity = { type: 'steps' };
    });
  }

  #cancelIfOver(run: EntryRun): void {
    const isOver = this.#state === 'closing' || this.#state === 'shutting-down';
    if (isOver || this.#cancelled.has(run.entry.id)) run.cancel();
  }

  #stopRunning(): void {
    this.#unwanted.abort();
    if (this.#activity.type === 'runs') this.cancel(this.#activity.run.entry.id);
  }
}
