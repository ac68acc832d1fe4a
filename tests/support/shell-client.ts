// Runs entries on a Shell one by one and collects their output, as a worker does, but without Redis.
import type { StreamName } from '@shellfleet/protocol';
import type {
  CommandStart,
  EntryId,
  KeeperFileOperation,
  RefusalReason,
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

interface Running {
  entryId: EntryId;
  parts: Record<StreamName, Buffer[]>;
  began: number;
  from: StreamOffsets;
  resolve(ran: Ran): void;
  reject(error: Error): void;
}

export class ShellClient {
  readonly shell: Shell;
  readonly late: { entryId: EntryId; stream: StreamName; offset: number; text: string }[] = [];
  /** Streams whose late output has ended. */
  readonly lateEnds: { entryId: EntryId; stream: StreamName; offset: number }[] = [];
  readonly shells: { shellNumber: number; reason: string }[] = [];
  disconnected: string | undefined;
  /** Set by the feeder of an open stdin. */
  onInputTaken: (entryId: EntryId, offset: number, readerClosed: boolean) => void = () => {};
  /** Off: nothing is stored, so the keeper's ring buffer fills. */
  acks = true;
  #running: Running | undefined;

  constructor(shell: Shell) {
    this.shell = shell;
    shell.on({
      onOutput: (entryId, stream, offset, bytes) => {
        this.#running?.parts[stream].push(Buffer.from(bytes));
        if (this.acks) shell.ack(entryId, stream, offset + bytes.length);
      },
      onLate: (entryId, stream, offset, bytes) => {
        if (bytes.length === 0) this.lateEnds.push({ entryId, stream, offset });
        else this.late.push({ entryId, stream, offset, text: Buffer.from(bytes).toString('latin1') });
      },
      onInputTaken: (entryId, offset, readerClosed) => this.onInputTaken(entryId, offset, readerClosed),
      onEnd: (entryId, end) => this.#end(entryId, end),
      onRefused: (entryId, reason) => this.#refuse(entryId, reason),
      onShell: (fresh) => this.shells.push(fresh),
      onDisconnect: (reason) => {
        this.disconnected = reason;
        this.#running?.reject(new Error(`disconnected: ${reason}`));
      },
    });
  }

  /** Output of the running entry so far. */
  received(stream: StreamName): Buffer {
    return Buffer.concat(this.#running?.parts[stream] ?? []);
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
    return this.#follow(entry.entryId, { stdout: 0, stderr: 0 }, () => this.shell.start(entry));
  }

  resume(entryId: EntryId, from: StreamOffsets): Promise<Ran> {
    return this.#follow(entryId, from, () => this.shell.resume(entryId, from));
  }

  #follow(entryId: EntryId, from: StreamOffsets, begin: () => void): Promise<Ran> {
    return new Promise((resolve, reject) => {
      this.#running = { entryId, parts: { stdout: [], stderr: [] }, began: performance.now(), from, resolve, reject };
      begin();
    });
  }

  #end(entryId: EntryId, end: ShellEnd): void {
    const running = this.#running;
    if (running?.entryId !== entryId) return;
    this.#running = undefined;
    const stdout = Buffer.concat(running.parts.stdout);
    const stderr = Buffer.concat(running.parts.stderr);
    running.resolve({
      entryId,
      stdout,
      stderr,
      end,
      out: stdout.toString('latin1'),
      err: stderr.toString('latin1'),
      code: end.exitCode,
      state: end.shell.state,
      ms: performance.now() - running.began,
    });
  }

  #refuse(entryId: EntryId, reason: RefusalReason): void {
    if (this.#running?.entryId === entryId) this.#running.reject(new Error(`refused: ${reason}`));
  }
}
