// The shell of a sandbox whose main process is the keeper.
import { abortable, type Resolvers, withResolvers } from '@shellfleet/concurrency';
import {
  decodeDirectory,
  decodeEnd,
  decodeProcesses,
  decodeRefusal,
  entryIdFromBytes,
  entryIdToBytes,
  type Frame,
  FrameType,
  type Hello,
  INPUT_END,
  MAX_TO_KEEPER,
  MalformedFrame,
  Question,
  uint32s,
  uint64s,
} from '@shellfleet/keeper';
import { STREAM_NAMES, type StreamName } from '@shellfleet/protocol';
import { encodeStart } from './encode-start.ts';
import { type ClaimOptions, claimKeeper, type KeeperConnection } from './keeper-connection.ts';
import type {
  BackgroundProcess,
  DisconnectReason,
  EntryId,
  Shell,
  ShellHandlers,
  ShellHello,
  ShellStart,
  StreamOffsets,
} from './shell.ts';
import { KeeperFiles } from './shell-files.ts';
import { KeeperTerminals } from './shell-terminals.ts';
import { toShellEnd } from './to-shell-end.ts';

/** Time beyond the termination timeout of end() in which the keeper ends all other processes and itself. */
const GONE_WITHIN_MS = 5_000;

/** Claims the keeper at the other end of the transport. Its shell may be new or have run entries (see `hello`). */
export async function openKeeperShell(options: ClaimOptions): Promise<Shell> {
  const { connection, hello, id } = await claimKeeper(options);
  return new KeeperShell(connection, toShellHello(hello, id));
}

class KeeperShell implements Shell {
  readonly hello: ShellHello;
  readonly terminals: KeeperTerminals;
  readonly files: KeeperFiles;
  readonly #connection: KeeperConnection;
  #handlers: ShellHandlers | undefined;
  /** The entry whose output is received, and its next offsets. */
  #receiving: { entryId: EntryId; id: Uint8Array; next: StreamOffsets } | undefined;
  #lastQuestion = 0;
  readonly #questions = new Map<number, Resolvers<Uint8Array>>();
  readonly #gone = withResolvers<DisconnectReason>();

  constructor(connection: KeeperConnection, hello: ShellHello) {
    this.#connection = connection;
    this.hello = hello;
    this.terminals = new KeeperTerminals((frame) => connection.send(frame));
    this.files = new KeeperFiles((frame) => connection.send(frame));
  }

  on(handlers: ShellHandlers): void {
    this.#handlers = handlers;
    this.#connection.release({
      frame: (frame) => this.#receive(frame),
      disconnected: (reason) => {
        this.#handlers = undefined;
        this.#gone.resolve(reason);
        this.files.gone();
        for (const question of this.#questions.values())
          question.reject(new Error(`The connection to the keeper ended (${reason}).`));
        handlers.onDisconnect(reason);
      },
    });
  }

  start(entry: ShellStart): void {
    const { kind, payload } = encodeStart(entry);
    if (payload.length > MAX_TO_KEEPER)
      throw new RangeError(`An entry of ${payload.length} bytes; at most ${MAX_TO_KEEPER} fit.`);
    const { entryId } = entry;
    const id = entryIdToBytes(entryId);
    this.#receiving = { entryId, id, next: { stdout: 0, stderr: 0 } };
    const offset = entry.type === 'command' ? (entry.shellNumber ?? 0) : 0;
    this.#connection.send({ type: FrameType.start, flags: kind, id, offset, payload });
  }

  ack(entryId: EntryId, stream: StreamName, offset: number): void {
    this.#connection.send({
      type: FrameType.ack,
      stream: STREAM_NAMES.indexOf(stream),
      id: entryIdToBytes(entryId),
      offset,
    });
  }

  resume(entryId: EntryId, offsets: StreamOffsets): void {
    // The keeper has deleted acknowledged bytes: the first output then has a higher offset than requested.
    const acked = entryId === this.hello.entryId ? this.hello.acked : { stdout: 0, stderr: 0 };
    const next = { stdout: Math.max(offsets.stdout, acked.stdout), stderr: Math.max(offsets.stderr, acked.stderr) };
    const id = entryIdToBytes(entryId);
    this.#receiving = { entryId, id, next };
    const payload = uint64s(offsets.stdout, offsets.stderr);
    this.#connection.send({ type: FrameType.resume, id, payload });
  }

  stop(entryId: EntryId, { killGraceMs }: { killGraceMs: number }): void {
    this.#connection.send({ type: FrameType.stop, id: entryIdToBytes(entryId), payload: uint32s(killGraceMs) });
  }

  input(entryId: EntryId, offset: number, bytes: Uint8Array, end: boolean): void {
    const id = entryIdToBytes(entryId);
    this.#connection.send({ type: FrameType.input, flags: end ? INPUT_END : 0, id, offset, payload: bytes });
  }

  storage(state: 'away' | 'back'): void {
    this.#connection.send({ type: FrameType.storage, flags: state === 'away' ? 1 : 0 });
  }

  async background({ signal }: { signal?: AbortSignal } = {}): Promise<BackgroundProcess[]> {
    return decodeProcesses(await this.#ask(Question.processes, undefined, signal));
  }

  async directory({ path, signal }: { path?: string; signal?: AbortSignal } = {}): Promise<string | undefined> {
    return decodeDirectory(await this.#ask(Question.directory, path, signal));
  }

  async #ask(flags: number, about: string | undefined, signal: AbortSignal | undefined): Promise<Uint8Array> {
    if (!this.#handlers) throw new Error('There is no connection to the keeper.');
    const offset = ++this.#lastQuestion;
    const question = withResolvers<Uint8Array>();
    this.#questions.set(offset, question);
    const payload = about === undefined ? undefined : Buffer.from(about);
    this.#connection.send({ type: FrameType.ping, flags, offset, ...(payload && { payload }) });
    return abortable(question.promise, signal).finally(() => this.#questions.delete(offset));
  }

  pause(): void {
    this.#connection.pause();
  }

  resumeReading(): void {
    this.#connection.resume();
  }

  async end({ terminationTimeoutMs }: { terminationTimeoutMs: number }): Promise<void> {
    this.#connection.send({ type: FrameType.close, payload: uint32s(terminationTimeoutMs) });
    const late = withResolvers<never>();
    const limit = terminationTimeoutMs + GONE_WITHIN_MS;
    const timer = setTimeout(() => late.reject(new Error(`The keeper did not end within ${limit} ms.`)), limit);
    await Promise.race([this.#gone.promise, late.promise]).finally(() => clearTimeout(timer));
  }

  disconnect(): void {
    this.#connection.close('released');
  }

  #receive(frame: Frame): void {
    const handlers = this.#handlers;
    if (!handlers) return;
    switch (frame.type) {
      case FrameType.output:
        this.#output(handlers, frame);
        break;
      case FrameType.late:
        handlers.onLate(entryIdFromBytes(frame.id), streamOf(frame), frame.offset, frame.payload);
        break;
      case FrameType.end:
        this.#end(handlers, frame);
        break;
      case FrameType.inputTaken:
        handlers.onInputTaken?.(entryIdFromBytes(frame.id), frame.offset, frame.flags === INPUT_END);
        break;
      case FrameType.refused:
        this.#refused(handlers, frame);
        break;
      case FrameType.shell:
        handlers.onShell({ shellNumber: frame.offset, reason: Buffer.from(frame.payload).toString() });
        break;
      case FrameType.pong:
        // The bytes of a frame are its own only until this returns.
        this.#questions.get(frame.offset)?.resolve(Uint8Array.from(frame.payload));
        break;
      case FrameType.terminalOutput:
        this.terminals.output(frame);
        break;
      case FrameType.terminalEnded:
        this.terminals.end(frame);
        break;
      case FrameType.fileOutput:
        this.files.output(frame);
        break;
      case FrameType.fileEnded:
        this.files.end(frame);
        break;
      case FrameType.hello: // a second reply to this connection's claim, or the reply to the next owner's
        if (frame.fence > this.#connection.fence) this.#connection.close('fenced');
        break;
      default:
        throw new MalformedFrame(`A frame of unknown type ${frame.type}.`);
    }
  }

  #output(handlers: ShellHandlers, frame: Frame): void {
    const stream = streamOf(frame);
    const receiving = this.#receiving;
    if (receiving === undefined || !isSame(receiving.id, frame.id)) return; // of an earlier entry
    if (frame.offset !== receiving.next[stream]) {
      throw new MalformedFrame(`Output at ${frame.offset} of ${stream} where ${receiving.next[stream]} comes next.`);
    }
    receiving.next[stream] += frame.payload.length;
    handlers.onOutput(receiving.entryId, stream, frame.offset, frame.payload);
  }

  #refused(handlers: ShellHandlers, frame: Frame): void {
    const reason = decodeRefusal(frame.flags);
    // The keeper may have had no room for the SHELL message.
    if (reason === 'other-shell') handlers.onShell({ shellNumber: frame.offset, reason: 'the shell ended' });
    handlers.onRefused(entryIdFromBytes(frame.id), reason);
  }

  #end(handlers: ShellHandlers, frame: Frame): void {
    const receiving = this.#receiving;
    if (receiving === undefined || !isSame(receiving.id, frame.id)) return;
    const end = decodeEnd(frame.payload);
    const { entryId, next } = receiving;
    if (next.stdout !== end.totals.stdout || next.stderr !== end.totals.stderr) {
      throw new MalformedFrame(
        `An end after ${end.totals.stdout} and ${end.totals.stderr} bytes; ${next.stdout} and ${next.stderr} came.`,
      );
    }
    this.#receiving = undefined;
    handlers.onEnd(entryId, toShellEnd(end));
  }
}

/** Two ids of entries. They are compared as bytes: the text of one takes longer than all else of a frame. */
function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

function streamOf(frame: Frame): StreamName {
  const stream = STREAM_NAMES[frame.stream];
  if (!stream) throw new MalformedFrame(`An unknown stream ${frame.stream}.`);
  return stream;
}

function toShellHello(hello: Hello, id: Uint8Array): ShellHello {
  return {
    state: hello.state,
    entryId: id.some((byte) => byte !== 0) ? entryIdFromBytes(id) : null,
    received: hello.received,
    acked: hello.acked,
    shellNumber: hello.shellNumber,
    begunCount: hello.begunCount,
    ...(hello.problem && { problem: hello.problem }),
  };
}
