import type {
  Adopted,
  adopt,
  announce,
  append,
  Entry,
  FinishOptions,
  finish,
  peek,
  release,
  rerun,
  Taken,
  take,
  withdraw,
} from '@shellfleet/mailbox';
import type { acquire } from '@shellfleet/placement';
import { type SessionKeys, type SessionSpec, ShellfleetError } from '@shellfleet/protocol';
import { type Sealer, sealPlace } from '@shellfleet/sealing';

interface FakeEntry {
  id: string;
  script: string;
  retry?: 'idempotent';
  /** Span of the submit, and whether its context is set in the command's variables. */
  trace?: unknown;
  traceparent?: true;
}

/** The mailbox of one session in memory, with the functions that a host calls. It has one owner at a time, by fence. */
export class FakeMailbox {
  fence = 0;
  phase: 'open' | 'closing' = 'open';
  epoch = 0;
  epochBase = 0;
  shell: { host: string; sandbox: string } | undefined;
  running: Entry | undefined;
  readonly waiting: Entry[] = [];
  readonly finished: { id: string; outcome: string; takeNext: boolean; result: FinishOptions['result'] }[] = [];
  readonly events: string[] = [];
  takes = 0;
  /** Time of each start, by a clock that is at 0 when the session is adopted. */
  startedAt = 2;
  /** Names of the scripts that the host has called. */
  readonly calls: string[] = [];
  released: string | undefined;
  /** Makes the next finish lose its reply, and runs before the finish arrives again. */
  onLostReply: (() => void) | undefined;
  readonly #keys: SessionKeys;
  readonly #sealer: Sealer;
  readonly #spec: SessionSpec;

  constructor(keys: SessionKeys, sealer: Sealer, spec: SessionSpec = {}) {
    this.#keys = keys;
    this.#sealer = sealer;
    this.#spec = spec;
  }

  submit({ id, script, retry, ...carried }: FakeEntry): Entry {
    const payload = { type: 'command', script, timeoutMs: 60_000, killGraceMs: 0, encoding: 'utf8', ...carried };
    const entry: Entry = {
      id,
      kind: 'command',
      payload: this.#sealer.seal(JSON.stringify(payload), this.#placeOf(id, retry ?? 'never')),
      inbox: '',
      acceptedAt: 1,
      startedAt: 0,
      offsets: { stdout: 0, stderr: 0 },
      seq: 0,
      retry: retry ?? 'never',
      fence: 0,
      host: '',
      starts: 1,
    };
    this.waiting.push(entry);
    return entry;
  }

  /** Makes another host the owner, so that every later write of this one is refused. */
  loseTo(fence: number): void {
    this.fence = fence;
  }

  /** Functions of the package, for `vi.mock`. */
  get functions() {
    const isOwner = ({ fence }: { fence: number }) => fence === this.fence;
    const start = (owner: { fence: number; host: string }): Taken => {
      if (this.running !== undefined) return { type: 'running', entry: this.running };
      const head = this.waiting.shift();
      if (head === undefined) return this.phase === 'closing' ? { type: 'empty', closing: true } : { type: 'empty' };
      this.running = { ...head, startedAt: this.startedAt, fence: owner.fence, host: owner.host };
      return { type: 'started', entry: this.running };
    };
    return {
      acquire: (async () => {
        this.fence += 1;
        return { type: 'acquired', fence: this.fence };
      }) as typeof acquire,
      adopt: (async (owner) => (isOwner(owner) ? this.#adopted() : { type: 'fenced' })) as typeof adopt,
      announce: (async (owner, shell, event) => {
        if (!isOwner(owner)) return { type: 'fenced' };
        if (event !== undefined) this.events.push(event.type);
        this.epoch = shell.epoch;
        if (shell.status === 'ready') this.shell = { host: owner.host, sandbox: shell.sandbox ?? '' };
        return { type: 'recorded' };
      }) as typeof announce,
      peek: (async () => {
        const [entry] = this.waiting;
        return entry && { entry, runnable: true, cleared: '', heldUnder: '' };
      }) as typeof peek,
      take: (async (owner) => {
        this.takes += 1;
        return isOwner(owner) ? start(owner) : { type: 'fenced' };
      }) as typeof take,
      withdraw: (async (owner) => {
        if (!isOwner(owner)) return { type: 'fenced' };
        return this.running === undefined ? { type: 'empty' } : { type: 'running', entry: this.running };
      }) as typeof withdraw,
      append: (async (owner) =>
        isOwner(owner) ? { type: 'stored', offsets: { stdout: 0, stderr: 0 } } : { type: 'fenced' }) as typeof append,
      rerun: (async () => ({ type: 'restarted', startedAt: 3, firstStartedAt: 2 })) as typeof rerun,
      finish: (async (owner, entryId, { result, takeNext }) => {
        if (!isOwner(owner)) return { type: 'fenced' };
        if (this.finished.some(({ id }) => id === entryId)) {
          const next: Taken =
            this.running !== undefined
              ? { type: 'running', entry: this.running }
              : takeNext
                ? start(owner)
                : { type: 'empty' };
          return { type: 'finished', event: '1-0', next, endedBefore: true };
        }
        if (this.running?.id === entryId) this.running = undefined;
        else if (this.waiting[0]?.id === entryId) this.waiting.shift();
        else return { type: 'not-running' };
        this.finished.push({ id: entryId, outcome: result.outcome, takeNext, result });
        const next: Taken = takeNext ? start(owner) : { type: 'empty' };
        const { onLostReply } = this;
        this.onLostReply = undefined;
        if (onLostReply !== undefined) {
          onLostReply();
          throw new ShellfleetError('QUEUE_UNAVAILABLE', 'no reply');
        }
        return { type: 'finished', event: '1-0', next, endedBefore: false };
      }) as typeof finish,
      release: (async (owner, status, _event, waiting) => {
        if (!isOwner(owner)) return { type: 'fenced' };
        if (this.running !== undefined || (waiting !== 'leave' && this.waiting.length > 0 && this.phase === 'open'))
          return { type: 'busy' };
        this.released = status;
        return { type: 'released', phase: this.phase };
      }) as typeof release,
    };
  }

  #placeOf(id: string, retry: string) {
    return sealPlace('payload', this.#keys, { id, generation: 'one', retry, inbox: '' });
  }

  #adopted(): Adopted {
    return {
      type: 'adopted',
      phase: this.phase,
      generation: 'one',
      spec: this.#sealer.seal(JSON.stringify(this.#spec), sealPlace('spec', this.#keys, { generation: 'one' })),
      epoch: this.epoch,
      reportedEpoch: this.epoch,
      epochBase: this.epochBase,
      preparedEpoch: this.epoch,
      loss: '',
      driven: false,
      waiting: this.waiting.length,
      ...{ createdAt: 1, ownedAt: 1, activeAt: 1, clockAheadMs: Date.now() },
      previousHost: '',
      ...(this.shell === undefined ? {} : { shell: this.shell }),
      ...(this.running === undefined ? {} : { running: this.running }),
    };
  }
}
