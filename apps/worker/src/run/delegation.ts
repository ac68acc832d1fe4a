import { type Entry, type Fenced, type HostMailbox, type Rung, type Taken, toRung } from '@shellfleet/mailbox';
import type { CarriedEntry } from '@shellfleet/protocol';
import type { Journal } from '../journal/journal.ts';
import { toBegunId } from './begun-id.ts';

// DELEGATION-1. While the delegation holds, `submit` starts the next entry of the session in this host's name, and a wake-up brings it here. A
//         wake-up can be lost, come late, or twice: what it does not bring, `take` finds as running.
// DELEGATION-2. The delegation is withdrawn before this host ends or leaves the shell. What was started until then runs, or is
//         ended, first.
// DELEGATION-3. A wake-up is believed only if its entry was started under this host's fence and never began here. Else the
//         mailbox is asked.

const EMPTY: Taken = { type: 'empty' };

interface DelegationDeps {
  mailbox: Pick<HostMailbox, 'owner' | 'withdraw'>;
  journal: Pick<Journal, 'knows'>;
}

/** The permission of `submit` to start the next entry in the name of a session's host, and what it has started. */
export class Delegation {
  readonly #deps: DelegationDeps;
  /** The mailbox may have the delegation stored. */
  #mayBeStored = false;
  #rung: Rung | undefined;
  /** The entry that was run last. Its wake-up may be on its way, on another connection. */
  #startedId: string | undefined;
  /** What a withdrawal has returned and nobody has run or ended. */
  #kept: Taken | Fenced | undefined;

  constructor(deps: DelegationDeps) {
    this.#deps = deps;
  }

  /** A call is made that ends an entry and takes the next one: the mailbox may store the delegation with it. */
  mayBeStored(): void {
    if (!this.#deps.mailbox.owner.admission) this.#mayBeStored = true;
  }

  /** A wake-up has brought an entry. */
  bring(carried: CarriedEntry): void {
    if (carried.id !== this.#startedId) this.#rung = toRung(carried, this.#deps.mailbox.owner);
  }

  /** Redis came back with other data: the mailbox is asked what was started. */
  forget(): void {
    this.#rung = undefined;
  }

  /**
   * What a wake-up has brought, or what was started before the delegation was withdrawn: where the host ends the session, and where
   * it judges entries since (`judges`). An entry that is not started is brought only to a host that `takes` entries and
   * judges them.
   */
  async next(how: 'takes' | 'not-now' | 'ends', judges: boolean): Promise<Taken | Fenced> {
    const rung = this.#takeRung();
    const kept = this.#kept;
    this.#kept = undefined;
    if (rung?.type === 'started') return rung;
    if (kept !== undefined) return kept;
    if (how === 'ends' || judges) {
      const withdrawn = await this.withdraw();
      if (withdrawn.type !== 'empty') return withdrawn;
    }
    return rung !== undefined && how === 'takes' && judges ? rung : EMPTY;
  }

  /** An entry is run, so a wake-up that brings it again means nothing. */
  started({ id }: Pick<Entry, 'id'>): void {
    this.#startedId = id;
    if (this.#rung?.entry.id === id) this.#rung = undefined;
    if (this.#kept !== undefined && 'entry' in this.#kept && this.#kept.entry.id === id) this.#kept = undefined;
  }

  /** Whoever withdrew does not deal with what was started before: the next step does. The mailbox says it once. */
  keep(withdrawn: Taken | Fenced): void {
    this.#kept = withdrawn;
  }

  /** Afterwards nothing is started in this host's name. Returns what was started before: `running`, or `empty`. */
  async withdraw(): Promise<Taken | Fenced> {
    if (!this.#mayBeStored) return EMPTY;
    const withdrawn = await this.#deps.mailbox.withdraw();
    this.#mayBeStored = false;
    return withdrawn;
  }

  /** DELEGATION-3. */
  #takeRung(): Rung | undefined {
    const rung = this.#rung;
    this.#rung = undefined;
    const { journal, mailbox } = this.#deps;
    return rung === undefined || journal.knows(toBegunId(rung.entry, mailbox.owner.keys)) ? undefined : rung;
  }
}
