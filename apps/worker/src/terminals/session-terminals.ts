import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { readTerminalProgress } from '@shellfleet/mailbox';
import {
  type AttachRequest,
  type HostReply,
  ShellfleetError,
  terminalStartSchema,
  tryJson,
  type WireTerminalEnd,
} from '@shellfleet/protocol';
import { sealPlace } from '@shellfleet/sealing';
import type { ShellTerminalStart, ShellTerminals } from '../shell/shell-terminals.ts';
import { HostTerminal, type HostTerminalDeps, type TerminalProgress } from './host-terminal.ts';
import type { TerminalAudit } from './terminal-audit.ts';

// The terminals of one session on this host, outside its mailbox.
// TERMINALS-1. A terminal that was open under an earlier owner or process continues at the next wake-up from its user.
// TERMINALS-2. When the sandbox ends, each terminal is reported as lost before the session is given up.
// TERMINALS-3. Where keys are configured, a terminal is opened once, and only with a producer's signature.

/** Longest time to store the ends of terminals. After that, their users detect the end. */
const STORE_ENDS_MS = 1_000;
const LOST: WireTerminalEnd = { reason: 'lost', exitCode: null, signal: null };

export interface SessionTerminalsDeps extends HostTerminalDeps {
  /** Records the terminals that this host has opened, where keys are configured. */
  audit: TerminalAudit;
  begun: { knows(terminal: string): boolean; record(terminal: string): void };
  env: Record<string, string>;
  /** Called with the number of open terminals after each change. */
  onCount?(count: number): void;
  /** Returns why no terminal may be opened, as the end of a sentence. Undefined if terminals may be opened. */
  refusal(): string | undefined;
}

export class SessionTerminals {
  readonly #deps: SessionTerminalsDeps;
  readonly #open = new Map<string, HostTerminal>();
  readonly #resuming = new Set<string>();
  #terminals: ShellTerminals | undefined;
  #knowsShell = false;

  constructor(deps: SessionTerminalsDeps) {
    this.#deps = deps;
  }

  get count(): number {
    return this.#open.size;
  }

  /** Takes a new connection to the sandbox. Undefined when there is no sandbox any more. */
  async connect(terminals: ShellTerminals | undefined): Promise<void> {
    this.#terminals = terminals;
    this.#knowsShell = true;
    if (terminals !== undefined) {
      for (const terminal of this.#open.values()) terminal.connect(terminals);
      return;
    }
    await this.#end(LOST);
  }

  /** Ends all terminals, because the session ends its sandbox. */
  async hangUp(): Promise<void> {
    await this.#end({ reason: 'hung-up', exitCode: null, signal: null });
  }

  /** Called at the end of the adoption, when it is known whether there is a sandbox. */
  settle(): void {
    this.#knowsShell = true;
  }

  /** Opens a terminal. Throws QUOTA_EXCEEDED, SANDBOX_UNAVAILABLE, and UNAUTHORIZED. */
  async open(request: AttachRequest): Promise<HostReply<'attach'>> {
    const { terminal: id, rows, columns, term } = request;
    const producer = await this.#checkSigned(request);
    await this.#refuse(id);
    if (this.#terminals === undefined) return { state: 'no-shell' };
    const isNew = !this.#open.has(id);
    const start = { id, rows, columns, env: { ...this.#deps.env, TERM: term }, from: 0, resumeOnly: false };
    const opened = await this.#follow(start, { shown: 0, rawTo: 0 }).opened;
    if (opened.type !== 'refused') {
      if (isNew) this.#deps.audit.started(id, producer);
      return { state: 'open' };
    }
    const { session } = this.#deps.mailbox.owner.keys;
    if (opened.reason === 'too-many')
      throw new ShellfleetError(
        'QUOTA_EXCEEDED',
        `Session ${session} has four open terminals, and that is the limit. Leave one of them.`,
      );
    throw new ShellfleetError('SANDBOX_UNAVAILABLE', `Session ${session} can have no terminal: ${opened.problem}.`);
  }

  async #checkSigned(request: AttachRequest): Promise<string | undefined> {
    try {
      return this.#signerOf(request);
    } catch (error) {
      await this.#deps.audit.refused();
      throw error;
    }
  }

  #signerOf({ terminal, generation, rows, columns, term, signed = '' }: AttachRequest): string | undefined {
    const { sealer, mailbox, begun } = this.#deps;
    if (!sealer.verifies) return undefined;
    const place = sealPlace('terminal-input', mailbox.owner.keys, { terminal, number: 0 });
    const { plain, signature } = sealer.openSigned(signed, place);
    const start = terminalStartSchema.safeParse(tryJson(plain)).data;
    if (!isDeepStrictEqual(start, { generation, rows, columns, term })) sealer.refuse(place, 'it is for another start');
    if (!this.#open.has(terminal)) {
      if (begun.knows(terminal)) sealer.refuse(place, 'this terminal was opened before');
      begun.record(terminal);
    }
    return signature?.signer;
  }

  async #refuse(terminal: string): Promise<void> {
    const refusal = this.#deps.refusal();
    if (refusal === undefined) return;
    await this.#deps.audit.denied(terminal, refusal);
    const { session } = this.#deps.mailbox.owner.keys;
    throw new ShellfleetError('SANDBOX_UNAVAILABLE', `Session ${session} can have no terminal: ${refusal}.`);
  }

  /** Handles a message from a terminal's user: input, or a report of what was read (TERMINALS-1). */
  wakeUp(id: string): void {
    const terminal = this.#open.get(id);
    terminal?.wakeUp();
    if (terminal !== undefined || !this.#knowsShell || this.#resuming.has(id)) return;
    this.#resuming.add(id);
    void this.#resume(id)
      .catch(() => {}) // tried again at the next wake-up
      .finally(() => this.#resuming.delete(id));
  }

  async #resume(id: string): Promise<void> {
    const { redis, keys } = this.#deps.mailbox.owner;
    const stored = await readTerminalProgress(redis, keys, id);
    // Before the first input the terminal is not open: its user is about to send the request `attach`.
    if (stored === undefined || stored.input === 0 || this.#open.has(id)) return;
    const progress = { shown: stored.output, rawTo: stored.rawTo };
    // The keeper ignores this size and keeps that of the open terminal.
    const start = { id, rows: 1, columns: 1, env: {}, from: progress.rawTo, resumeOnly: true };
    const terminal = this.#follow(start, progress);
    if (this.#terminals === undefined) terminal.end(LOST);
  }

  async #end(end: WireTerminalEnd): Promise<void> {
    const open = [...this.#open.values()];
    for (const terminal of open) terminal.end(end);
    if (open.length > 0) await Promise.race([Promise.all(open.map(({ done }) => done)), delay(STORE_ENDS_MS)]);
  }

  #follow(start: ShellTerminalStart, progress: TerminalProgress): HostTerminal {
    const terminal = this.#open.get(start.id) ?? new HostTerminal(start, progress, this.#deps);
    if (this.#open.has(start.id)) return terminal;
    this.#open.set(start.id, terminal);
    this.#deps.onCount?.(this.#open.size);
    void terminal.done.then(() => {
      this.#open.delete(start.id);
      if (terminal.ending !== undefined) this.#deps.audit.ended(start.id, terminal.ending);
      this.#deps.onCount?.(this.#open.size);
    });
    if (this.#terminals !== undefined) terminal.connect(this.#terminals);
    return terminal;
  }
}
