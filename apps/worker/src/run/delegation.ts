import { type Entry, type Fenced, type HostMailbox, type Rung, type Taken, toRung } from '@shellfleet/mailbox';
import type { CarriedEntry } from '@shellfleet/protocol';
import { type Journal, toBegunId } from '../journal/journal.ts';

// DELEGATION-1. While the delegation holds, `submit` starts the session's next entry in this host's name, and a wake-up
//               brings it here. `take` finds it as running if the wake-up is lost, late or repeated.
// DELEGATION-2. The delegation is withdrawn before this host ends or leaves the shell. First it runs or ends what was
//               started until then.
// DELEGATION-3. A wake-up counts only if its entry was started under this host's fence and never began here. Otherwise
//               the mailbox is asked.

const EMPTY: Taken = { type: 'empty' };

interface DelegationDeps {
  mailbox: Pick<HostMailbox, 'owner' | 'withdraw'>;
  journal: Pick<Journal, 'knows'>;
}

/** The permission of `submit` to start the next entry in a host's name, and the entries that it has started. */
export class Delegation {
  readonly #deps: DelegationDeps;
  #mayBeStored = false;
  #rung: Rung | undefined;
  /** Id of the last entry that was run. Its wake-up may still arrive, on another connection. */
  #startedId: string | undefined;
  /** An entry that a withdrawal returned and that was not run or ended yet. */
  #kept: Taken | Fenced | undefined;

  constructor(deps: DelegationDeps) {
    this.#deps = deps;
  }

  /** Reports a call that ends an entry and takes the next: the mailbox may store the delegation in that call. */
  mayBeStored(): void {
    if (!this.#deps.mailbox.owner.admission) this.#mayBeStored = true;
  }

  /** Receives an entry that a wake-up brought. */
  bring(carried: CarriedEntry): void {
    if (carried.id !== this.#startedId) this.#rung = toRung(carried, this.#deps.mailbox.owner);
  }

  /** Drops a brought entry after Redis lost data. The mailbox is asked instead. */
  forget(): void {
    this.#rung = undefined;
  }

  /** Returns an entry that a wake-up brought, or a withdrawal found. An unstarted entry needs a host that `decides`. */
  async next(how: 'takes' | 'not-now' | 'ends', decides: boolean): Promise<Taken | Fenced> {
    const rung = this.#takeRung();
    const kept = this.#kept;
    this.#kept = undefined;
    if (rung?.type === 'started') return rung;
    if (kept !== undefined) return kept;
    if (how === 'ends' || decides) {
      const withdrawn = await this.withdraw();
      if (withdrawn.type !== 'empty') return withdrawn;
    }
    return rung !== undefined && how === 'takes' && decides ? rung : EMPTY;
  }

  /** Reports that an entry runs, so that another wake-up for it has no effect. */
  started({ id }: Pick<Entry, 'id'>): void {
    this.#startedId = id;
    if (this.#rung?.entry.id === id) this.#rung = undefined;
    if (this.#kept !== undefined && 'entry' in this.#kept && this.#kept.entry.id === id) this.#kept = undefined;
  }

  /** Keeps the reply of a withdrawal for the next step, since the mailbox gives it only once. */
  keep(withdrawn: Taken | Fenced): void {
    this.#kept = withdrawn;
  }

  /** Withdraws the delegation. Returns the entry that was started before, if any. */
  async withdraw(): Promise<Taken | Fenced> {
    if (!this.#mayBeStored) return EMPTY;
    const withdrawn = await this.#deps.mailbox.withdraw();
    this.#mayBeStored = false;
    return withdrawn;
  }

  #takeRung(): Rung | undefined {
    const rung = this.#rung;
    this.#rung = undefined;
    const { journal, mailbox } = this.#deps;
    return rung === undefined || journal.knows(toBegunId(rung.entry, mailbox.owner.keys)) ? undefined : rung;
  }
}
