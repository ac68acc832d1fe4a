// A terminal of a keeper, driven as by a user: types, and waits for text to appear.
import type { Shell, ShellTerminal, TerminalHandlers } from '@shellfleet/worker/shell';
import { ulid } from 'ulid';
import { until } from './until.ts';

type TerminalEnd = Parameters<TerminalHandlers['onEnd']>[0];

export interface KeeperTerminalOptions {
  id?: string;
  rows?: number;
  columns?: number;
  env?: Record<string, string>;
  from?: number;
  resumeOnly?: boolean;
  /** Whether output is acknowledged. If not, the keeper's ring buffer fills. */
  acks?: boolean;
}

export class KeeperTerminal {
  readonly id: string;
  /** The output since the last match. */
  shown = '';
  typed = 0;
  end: TerminalEnd | undefined;
  readonly #terminal: ShellTerminal;
  readonly #acks: boolean;
  #sent = 0;
  #offset: number;

  constructor(shell: Shell, options: KeeperTerminalOptions = {}) {
    const { id = ulid(), rows = 24, columns = 80, from = 0, resumeOnly = false, acks = true, env = {} } = options;
    this.id = id;
    this.#acks = acks;
    this.#offset = from;
    this.#terminal = shell.terminals.open(
      { id, rows, columns, from, resumeOnly, env: { TERM: 'xterm', PS1: '$ ', ...env } },
      {
        onOutput: (offset, bytes, typed) => {
          this.shown += Buffer.from(bytes).toString();
          this.typed = typed;
          this.#offset = offset + bytes.length;
          if (this.#acks) this.#terminal.ack(this.#offset);
        },
        onEnd: (end) => {
          this.end = end;
        },
      },
    );
  }

  get offset(): number {
    return this.#offset;
  }

  type(text: string): void {
    this.typeAt(this.#sent, text);
    this.#sent += Buffer.byteLength(text);
  }

  typeAt(offset: number, text: string): void {
    this.#terminal.input(offset, Buffer.from(text));
  }

  ack(offset = this.#offset): void {
    this.#terminal.ack(offset);
  }

  resize(rows: number, columns: number): void {
    this.#terminal.resize({ rows, columns });
  }

  close(): void {
    this.#terminal.close();
  }

  /** Waits for a match. Later calls search only the output after it. */
  async sees(pattern: string | RegExp): Promise<string> {
    const seen = await until(
      () => ({ found: this.#find(pattern), shown: this.shown, end: this.end }),
      ({ found }) => found !== undefined,
    );
    this.shown = this.shown.slice((seen.found?.at ?? 0) + (seen.found?.text.length ?? 0));
    return seen.found?.text ?? '';
  }

  ends(): Promise<TerminalEnd | undefined> {
    return until(
      () => this.end,
      (end) => end !== undefined,
    );
  }

  #find(pattern: string | RegExp): { at: number; text: string } | undefined {
    if (typeof pattern === 'string') {
      const at = this.shown.indexOf(pattern);
      return at < 0 ? undefined : { at, text: pattern };
    }
    const match = pattern.exec(this.shown);
    return match === null ? undefined : { at: match.index, text: match[0] };
  }
}
