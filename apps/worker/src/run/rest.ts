import { type Entry, type Fenced, type HostMailbox, type Rung, type Taken, toRung } from '@shellfleet/mailbox';
import type { CarriedEntry } from '@shellfleet/protocol';
import type { Journal } from '../journal/journal.ts';
import { toBegunId } from './begun-id.ts';

// REST-1. While the session rests, `submit` starts its next entry in this host's name, and a wake-up brings it here. A
//         wake-up can be lost, come late, or twice: what it does not bring, `take` finds as running.
// REST-2. The rest is withdrawn before this host ends or leaves the shell. What was started until then runs, or is
//         ended, first.
// REST-3. A wake-up is believed only if its entry was started under this host's fence and never began here. Else the
//         mailbox is asked.

const EMPTY: Taken = { type: 'empty' };

interface RestDeps {
  mailbox: Pick<HostMailbox, 'owner' | 'withdraw'>;
  journal: Pick<Journal, 'knows'>;
}

/** What `submit` may do in the name of a session's host, and has done. */
export class Rest {
  readonly #deps: RestDeps;
  /** The mailbox may have it stored that the session rests. */
  #mayRest = false;
  #rung: Rung | undefined;
  /** The entry that was run last. Its wake-up may be on its way, on another connection. */
  #startedId: string | undefined;
  /** What a withdrawal has returned and nobody has run or ended. */
  #kept: Taken | Fenced | undefined;

  constructor(deps: RestDeps) {
    this.#deps = deps;
  }

  /** A call is made that ends an entry and takes the next one: the mailbox may store with it that the session rests. */
  mayBegin(): void {
    if (!this.#deps.mailbox.owner.admission) this.#mayRest = true;
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
   * What a wake-up has brought, or what was started before the rest ended: where the host ends the session, and where
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
    if (!this.#mayRest) return EMPTY;
    const withdrawn = await this.#deps.mailbox.withdraw();
    this.#mayRest = false;
    return withdrawn;
  }

  /** REST-3. */
  #takeRung(): Rung | undefined {
    const rung = this.#rung;
    this.#rung = undefined;
    const { journal, mailbox } = this.#deps;
    return rung === undefined || journal.knows(toBegunId(rung.entry, mailbox.owner.keys)) ? undefined : rung;
  }
}
