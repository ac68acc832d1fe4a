// Runs entries on a Shell one by one and collects their output, as a worker does, but without Redis.
import type { StreamName } from '@shellfleet/protocol';
import type {
  CommandStart,
  EntryEnd,
  EntryHandlers,
  EntryUlid,
  FileCallEnd,
  FileFailure,
  KeeperFileOperation,
  Shell,
  ShellEnd,
  ShellStart,
  StreamOffsets,
} from '@shellfleet/worker/shell';
import { ulid } from 'ulid';

export interface Ran {
  entryId: EntryUlid;
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

export interface FileRan extends Pick<Ran, 'stdout' | 'out' | 'err'> {
  code: 0 | 1;
  failure?: FileFailure;
}

export type RunOptions = Omit<CommandStart, 'type' | 'entryId' | 'script'> & { entryId?: EntryUlid };

const FREEZE = `while :; do for p in /proc/[0-9]*; do
  read -r _ name <$p/status && [ "$name" = keeper ] && [ $p != /proc/1 ] && kill -STOP \${p#/proc/} && break 2
done 2>/dev/null; done`;

export class ShellClient {
  readonly shell: Shell;
  readonly late: { entryId: EntryUlid; stream: StreamName; offset: number; text: string }[] = [];
  /** Streams whose late output has ended. */
  readonly lateEnds: { entryId: EntryUlid; stream: StreamName; offset: number }[] = [];
  readonly shells: { shellNumber: number; reason: string }[] = [];
  disconnected: string | undefined;
  /** Set by the feeder of an open stdin. */
  onInputTaken: (entryId: EntryUlid, offset: number, readerClosed: boolean) => void = () => {};
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

  async file(operation: KeeperFileOperation): Promise<FileRan> {
    const end = await this.shell.files.call(ulid(), operation, 10_000);
    if (end.type !== 'done' && end.type !== 'failed') throw new Error(`refused: ${end.type}`);
    const { stderr } = end;
    const stdout = end.type === 'done' ? end.stdout : Buffer.alloc(0);
    return {
      ...{ stdout, out: stdout.toString('latin1'), err: stderr.toString('latin1') },
      ...(end.type === 'done' ? { code: 0 } : { code: 1, failure: end.failure }),
    };
  }

  /** Begins to read a file, by a helper of the keeper that a command stops with SIGSTOP before it has ended. */
  async readFrozen(): Promise<{ id: string; reading: Promise<FileCallEnd> }> {
    const id = ulid();
    await this.run('truncate -s 100000000 /tmp/large');
    const frozen = this.run(FREEZE);
    const reading = this.shell.files.call(id, { type: 'read', path: '/tmp/large', offset: 0, length: 1e8 }, 60_000);
    await frozen;
    return { id, reading };
  }

  restart(terminationTimeoutMs = 2_000): Promise<Ran> {
    return this.start({ type: 'restart', entryId: ulid(), terminationTimeoutMs });
  }

  start(entry: ShellStart): Promise<Ran> {
    return this.#follow(entry.entryId, { stdout: 0, stderr: 0 }, (handlers) => this.shell.start(entry, handlers));
  }

  resume(entryId: EntryUlid, from: StreamOffsets): Promise<Ran> {
    return this.#follow(entryId, from, (handlers) => this.shell.resume(entryId, handlers));
  }

  async #follow(
    entryId: EntryUlid,
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
