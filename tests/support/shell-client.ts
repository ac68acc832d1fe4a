// Runs entries on a Shell one by one and collects their output, as a worker does, but without Redis.
import type { StreamName } from '@shellfleet/protocol';
import type {
  CommandStart,
  EntryEnd,
  EntryHandlers,
  EntryId,
  KeeperFileOperation,
  Shell,
  ShellEnd,
  ShellStart,
  StreamOffsets,
} from '@shellfleet/worker/shell';
import { ulid } from 'ulid';

export interface Ran {
  entryId: EntryId;
  stdout: Buffer;
  stderr: Buffer;
  end: ShellEnd;
  /** As strings, one byte a character, for comparing whole objects. */
  out: string;
  err: string;
  code: number | null;
  state: ShellEnd['shell']['state'];
  ms: number;
}

export type RunOptions = Omit<CommandStart, 'type' | 'entryId' | 'script'> & { entryId?: EntryId };

export class ShellClient {
  readonly shell: Shell;
  readonly late: { entryId: EntryId; stream: StreamName; offset: number; text: string }[] = [];
  /** Streams whose late output has ended. */
  readonly lateEnds: { entryId: EntryId; stream: StreamName; offset: number }[] = [];
  readonly shells: { shellNumber: number; reason: string }[] = [];
  disconnected: string | undefined;
  /** Set by the feeder of an open stdin. */
  onInputTaken: (entryId: EntryId, offset: number, readerClosed: boolean) => void = () => {};
  /** Whether output is acknowledged. Where it is not, the keeper's ring buffer fills. */
  acks = true;
  /** Output of the last entry. */
  #parts: Record<StreamName, Buffer[]> = { stdout: [], stderr: [] };

  constructor(shell: Shell) {
    this.shell = shell;
    shell.on({
      onLate: (entryId, stream, offset, bytes) => {
        if (bytes.length === 0) this.lateEnds.push({ entryId, stream, offset });
        else this.late.push({ entryId, stream, offset, text: Buffer.from(bytes).toString('latin1') });
      },
      onShell: (fresh) => this.shells.push(fresh),
      onGone: (reason) => {
        this.disconnected = reason;
      },
    });
  }

  /** Returns the output of the last entry so far. */
  received(stream: StreamName): Buffer {
    return Buffer.concat(this.#parts[stream]);
  }

  run(script: string | Uint8Array, options: RunOptions = {}): Promise<Ran> {
    const { entryId = ulid(), timeoutMs = 10_000, ...rest } = options;
    return this.start({ type: 'command', entryId, script, timeoutMs, ...rest });
  }

  file(operation: KeeperFileOperation): Promise<Ran> {
    return this.start({ type: 'file', entryId: ulid(), operation, timeoutMs: 10_000 });
  }

  restart(terminationTimeoutMs = 2_000): Promise<Ran> {
    return this.start({ type: 'restart', entryId: ulid(), terminationTimeoutMs });
  }

  start(entry: ShellStart): Promise<Ran> {
    return this.#follow(entry.entryId, { stdout: 0, stderr: 0 }, (handlers) => this.shell.start(entry, handlers));
  }

  resume(entryId: EntryId, from: StreamOffsets): Promise<Ran> {
    return this.#follow(entryId, from, (handlers) => this.shell.resume(entryId, handlers));
  }

  async #follow(
    entryId: EntryId,
    from: StreamOffsets,
    begin: (handlers: EntryHandlers) => Promise<EntryEnd>,
  ): Promise<Ran> {
    const began = performance.now();
    const parts: Record<StreamName, Buffer[]> = { stdout: [], stderr: [] };
    this.#parts = parts;
    const ended = await begin({
      onOutput: (stream, offset, bytes) => {
        parts[stream].push(Buffer.from(bytes));
        if (this.acks) this.shell.ack(entryId, stream, offset + bytes.length);
      },
      received: () => from,
      onInputTaken: (offset, readerClosed) => this.onInputTaken(entryId, offset, readerClosed),
    });
    if (ended.type === 'gone') throw new Error(`disconnected: ${ended.reason}`);
    if (ended.type === 'refused') throw new Error(`refused: ${ended.reason}`);
    const { end } = ended;
    const stdout = Buffer.concat(parts.stdout);
    const stderr = Buffer.concat(parts.stderr);
    return {
      entryId,
      stdout,
      stderr,
      end,
      out: stdout.toString('latin1'),
      err: stderr.toString('latin1'),
      code: end.exitCode,
      state: end.shell.state,
      ms: performance.now() - began,
    };
  }
}
