import { once } from 'node:events';
import { abortable } from '@shellfleet/concurrency';
import { ensureShellfleetError, toPrintable } from '@shellfleet/protocol';
import pc from 'picocolors';
import type { Config } from '../config.ts';

/** Output of the command line: requested data on stdout, messages for a person on stderr. */
export class CliOutput {
  /** Aborts when writing to stdout fails, for example because its reader has gone. Later writes are dropped. */
  readonly readerGone: AbortSignal;
  #stdoutHasFailed = false;
  /** Functions that colour a text, or return it unchanged where the configuration has no colours. */
  readonly colors: ReturnType<typeof pc.createColors>;
  readonly #config: Config;
  /** Rows of the terminal that the shown progress takes. */
  #progressRows = 0;

  constructor(config: Config) {
    this.#config = config;
    this.colors = pc.createColors(config.color);
    const gone = new AbortController();
    this.readerGone = gone.signal;
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE' && !this.#stdoutHasFailed) {
        this.#stdoutHasFailed = true;
        this.say(`stdout cannot be written, so what it has is not whole: ${error.message}.`);
      }
      gone.abort();
    });
    // A failure of stderr can be reported nowhere.
    process.stderr.on('error', () => {});
  }

  /** True if a person may read stderr. */
  get isTerminal(): boolean {
    return process.stderr.isTTY === true;
  }

  /** Writes bytes unchanged. Resolves when there is room for more. */
  async write(stream: 'stdout' | 'stderr', data: Uint8Array | string): Promise<void> {
    this.clearProgress();
    if (stream === 'stdout' && this.readerGone.aborted) return;
    if (process[stream].write(data)) return;
    await abortable(once(process[stream], 'drain'), this.readerGone).catch(() => {});
  }

  /** Resolves to true when the reader has everything that was written to stdout, or false when that fails. */
  async flush(): Promise<boolean> {
    await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
    return !this.#stdoutHasFailed;
  }

  /** Writes one line to stdout. Text from outside must be made printable first. */
  line(text: string): Promise<void> {
    return this.write('stdout', `${text}\n`);
  }

  json(value: unknown): Promise<void> {
    return this.line(JSON.stringify(value));
  }

  /** Writes a message for a person to stderr. */
  say(text: string): void {
    this.clearProgress();
    process.stderr.write(`${this.colors.dim('shellfleet:')} ${toPrintable(text)}\n`);
  }

  /** Shows a line that the next one replaces, if the configuration allows progress. */
  progress(text: string): void {
    if (!this.#config.progress) return;
    if (this.#progressRows > 1) this.clearProgress();
    const shown = toPrintable(text);
    process.stderr.write(`\r\u001b[2K${this.colors.dim(shown)}`);
    this.#progressRows = Math.max(1, Math.ceil(shown.length / (process.stderr.columns || 80)));
  }

  clearProgress(): void {
    if (this.#progressRows === 0) return;
    const rows = this.#progressRows;
    process.stderr.write(rows === 1 ? '\r\u001b[2K' : `\u001b[${rows - 1}A\r\u001b[J`);
    this.#progressRows = 0;
  }

  /** Reports an error in one line, with the next step. */
  fail(error: unknown): void {
    this.clearProgress();
    const { code, message, hint, stack, cause } = ensureShellfleetError(error);
    const step = code.endsWith('_INVALID') || isInstruction(message) ? '' : ` ${hint}`;
    process.stderr.write(`${this.colors.red('shellfleet:')} ${toPrintable(`${message}${step}`)} (${code})\n`);
    if (!this.#config.debug) return;
    process.stderr.write(`${stack ?? ''}\n${cause instanceof Error ? `${cause.stack}\n` : ''}`);
  }

  /** Writes aligned rows to stdout; cells are made printable. An empty cell is shown as `-`. */
  async table(rows: readonly (readonly string[])[]): Promise<void> {
    const cells = rows.map((row) => row.map((cell) => toPrintable(cell) || '-'));
    const widths = (cells[0] ?? []).map((_cell, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
    for (const row of cells) {
      await this.line(
        row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd(),
      );
    }
  }
}

/** Returns true for a message that ends with an instruction. It replaces the general hint, which is less precise. */
const isInstruction = (message: string) => /\. [A-Z`][^.]*\.$/.test(message);
