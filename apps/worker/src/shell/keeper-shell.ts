// The shell of a sandbox whose main process is the keeper.
import { abortable } from '@shellfleet/concurrency';
import {
  decodeDirectory,
  decodeEnd,
  decodeProcesses,
  decodeRefusal,
  encodeCommand,
  encodeRestart,
  entryIdFromBytes,
  entryIdToBytes,
  type Frame,
  FrameType,
  type Hello,
  INPUT_END,
  MAX_TO_KEEPER,
  MalformedFrame,
  Request,
  StartKind,
  uint32s,
  uint64s,
} from '@shellfleet/keeper';
import { DEFAULTS, type ShellWay, STREAM_NAMES, type StreamName } from '@shellfleet/protocol';
import { type ClaimedKeeper, type ClaimOptions, claimKeeper, type KeeperConnection } from './keeper-connection.ts';
import type {
  BackgroundProcess,
  DisconnectReason,
  EntryEnd,
  EntryHandlers,
  EntryUlid,
  Shell,
  ShellEvents,
  ShellHello,
  ShellStart,
  StreamOffsets,
} from './shell.ts';
import { KeeperFiles } from './shell-files.ts';
import { KeeperTerminals } from './shell-terminals.ts';
import { toShellEnd } from './to-shell-end.ts';

/** Time after the termination timeout of end() in which the keeper ends all other processes and itself. */
const GONE_WITHIN_MS = 5_000;

/** Claims the keeper at the other end of the transport. Its shell may be new or have run entries (see `hello`). */
export async function openKeeperShell(options: ClaimOptions): Promise<Shell> {
  return toShell(await claimKeeper(options));
}

/** Returns the shell of a keeper that was just claimed. */
export function toShell({ connection, hello, id }: ClaimedKeeper): Shell {
  return new KeeperShell(connection, toShellHello(hello, id));
}

interface CurrentEntry {
  id: Uint8Array;
  handlers: EntryHandlers;
  /** Offset of the next output of each stream. */
  next: StreamOffsets;
  end(end: EntryEnd): void;
}

class KeeperShell implements Shell {
  readonly hello: ShellHello;
  way: ShellWay | undefined;
  readonly terminals: KeeperTerminals;
  readonly files: KeeperFiles;
  readonly #connection: KeeperConnection;
  #events: ShellEvents | undefined;
  #current: CurrentEntry | undefined;
  #lastRequest = 0;
  readonly #requests = new Map<number, PromiseWithResolvers<Uint8Array>>();
  readonly #disconnected = Promise.withResolvers<void>();
  /** Reason of a broken connection. */
  #gone: DisconnectReason | undefined;

  constructor(connection: KeeperConnection, hello: ShellHello) {
    this.#connection = connection;
    this.hello = hello;
    this.way = hello.way;
    this.terminals = new KeeperTerminals((frame) => connection.send(frame));
    this.files = new KeeperFiles((frame) => connection.send(frame));
  }

  get connected(): boolean {
    return this.#gone === undefined;
  }

  on(events: ShellEvents): void {
    this.#events = events;
    this.#connection.release({
      frame: (frame) => this.#receive(frame),
      disconnected: (reason) => {
        this.#events = undefined;
        this.#gone = reason;
        this.#disconnected.resolve();
        this.files.gone();
        for (const request of this.#requests.values())
          request.reject(new Error(`The connection to the keeper ended (${reason}).`));
        this.#endCurrent({ type: 'gone', reason });
        events.onGone(reason);
      },
    });
  }

  async start(entry: ShellStart, handlers: EntryHandlers): Promise<EntryEnd> {
    const isCommand = entry.type === 'command';
    const kind = isCommand ? StartKind.command : StartKind.restart;
    const payload = isCommand
      ? encodeCommand({ ...entry, killGraceMs: entry.killGraceMs ?? DEFAULTS.command.killGraceMs })
      : encodeRestart(entry.terminationTimeoutMs);
    if (payload.length > MAX_TO_KEEPER)
      throw new RangeError(`An entry of ${payload.length} bytes; at most ${MAX_TO_KEEPER} fit.`);
    const id = entryIdToBytes(entry.entryId);
    const offset = isCommand ? (entry.shellNumber ?? 0) : 0;
    const frame = { type: FrameType.start, flags: kind, id, offset, payload };
    return this.#follow({ id, handlers, next: { stdout: 0, stderr: 0 } }, 'start', frame);
  }

  ack(entryId: EntryUlid, stream: StreamName, offset: number): void {
    this.#connection.send({
      type: FrameType.ack,
      stream: STREAM_NAMES.indexOf(stream),
      id: entryIdToBytes(entryId),
      offset,
    });
  }

  async resume(entryId: EntryUlid, handlers: EntryHandlers): Promise<EntryEnd> {
    const received = handlers.received();
    const acked = entryId === this.hello.entryId ? this.hello.acked : { stdout: 0, stderr: 0 };
    const next = { stdout: Math.max(received.stdout, acked.stdout), stderr: Math.max(received.stderr, acked.stderr) };
    const id = entryIdToBytes(entryId);
    const frame = { type: FrameType.resume, id, payload: uint64s(next.stdout, next.stderr) };
    return this.#follow({ id, handlers, next }, 'resume', frame);
  }

  #follow(
    entry: Omit<CurrentEntry, 'end'>,
    how: 'start' | 'resume',
    frame: Partial<Frame> & { type: number },
  ): Promise<EntryEnd> {
    if (this.#gone !== undefined) return Promise.resolve({ type: 'gone', reason: this.#gone });
    const ended = Promise.withResolvers<EntryEnd>();
    this.#current = { ...entry, end: ended.resolve };
    this.#connection.send(frame);
    entry.handlers.onFollowed?.(this, how);
    return ended.promise;
  }

  #endCurrent(end: EntryEnd): void {
    const current = this.#current;
    this.#current = undefined;
    current?.end(end);
  }

  stop(entryId: EntryUlid, { killGraceMs }: { killGraceMs: number }): void {
    this.#connection.send({ type: FrameType.stop, id: entryIdToBytes(entryId), payload: uint32s(killGraceMs) });
  }

  input(entryId: EntryUlid, offset: number, bytes: Uint8Array, end: boolean): void {
    const id = entryIdToBytes(entryId);
    this.#connection.send({ type: FrameType.input, flags: end ? INPUT_END : 0, id, offset, payload: bytes });
  }

  storage(state: 'away' | 'back'): void {
    this.#connection.send({ type: FrameType.storage, flags: state === 'away' ? 1 : 0 });
  }

  async background({ signal }: { signal?: AbortSignal } = {}): Promise<BackgroundProcess[]> {
    return decodeProcesses(await this.#request(Request.processes, undefined, signal));
  }

  async directory({ path, signal }: { path?: string; signal?: AbortSignal } = {}): Promise<string | undefined> {
    return decodeDirectory(await this.#request(Request.directory, path, signal));
  }

  async #request(flags: number, about: string | undefined, signal: AbortSignal | undefined): Promise<Uint8Array> {
    if (!this.#events) throw new Error('There is no connection to the keeper.');
    const offset = ++this.#lastRequest;
    const request = Promise.withResolvers<Uint8Array>();
    this.#requests.set(offset, request);
    const payload = about === undefined ? undefined : Buffer.from(about);
    this.#connection.send({ type: FrameType.ping, flags, offset, ...(payload && { payload }) });
    return abortable(request.promise, signal).finally(() => this.#requests.delete(offset));
  }

  pause(): void {
    this.#connection.pause();
  }

  resumeReading(): void {
    this.#connection.resume();
  }

  async end({ terminationTimeoutMs }: { terminationTimeoutMs: number }): Promise<void> {
    this.#connection.send({ type: FrameType.close, payload: uint32s(terminationTimeoutMs) });
    const late = Promise.withResolvers<never>();
    const limit = terminationTimeoutMs + GONE_WITHIN_MS;
    const timer = setTimeout(() => late.reject(new Error(`The keeper did not end within ${limit} ms.`)), limit);
    await Promise.race([this.#disconnected.promise, late.promise]).finally(() => clearTimeout(timer));
  }

  disconnect(): void {
    this.#connection.close('released');
  }

  #receive(frame: Frame): void {
    const events = this.#events;
    if (!events) return;
    switch (frame.type) {
      case FrameType.output:
        this.#output(frame);
        break;
      case FrameType.late:
        events.onLate(entryIdFromBytes(frame.id), streamOf(frame), frame.offset, frame.payload);
        break;
      case FrameType.end:
        this.#end(frame);
        break;
      case FrameType.inputTaken:
        this.#currentOf(frame)?.handlers.onInputTaken?.(frame.offset, frame.flags === INPUT_END);
        break;
      case FrameType.refused:
        this.#refused(events, frame);
        break;
      case FrameType.shell:
        events.onShell({ shellNumber: frame.offset, reason: Buffer.from(frame.payload).toString() });
        break;
      case FrameType.pong:
        // The bytes of the frame may be freed after this function returns, so they are copied.
        this.#requests.get(frame.offset)?.resolve(Uint8Array.from(frame.payload));
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

  /** Returns the current entry, unless the frame belongs to an earlier one. */
  #currentOf({ id }: Frame): CurrentEntry | undefined {
    // Compared as bytes, since making the text of an id takes longer than all else of a frame.
    return this.#current !== undefined && Buffer.compare(this.#current.id, id) === 0 ? this.#current : undefined;
  }

  #output(frame: Frame): void {
    const stream = streamOf(frame);
    const current = this.#currentOf(frame);
    if (current === undefined) return;
    const { next, handlers } = current;
    if (frame.offset !== next[stream])
      throw new MalformedFrame(`Output at ${frame.offset} of ${stream} where ${next[stream]} comes next.`);
    next[stream] += frame.payload.length;
    handlers.onOutput(stream, frame.offset, frame.payload);
  }

  #refused(events: ShellEvents, frame: Frame): void {
    const reason = decodeRefusal(frame.flags);
    // The keeper may have had no room for the SHELL message.
    if (reason === 'other-shell') events.onShell({ shellNumber: frame.offset, reason: 'the shell ended' });
    if (this.#currentOf(frame) !== undefined) this.#endCurrent({ type: 'refused', reason });
  }

  #end(frame: Frame): void {
    const next = this.#currentOf(frame)?.next;
    if (next === undefined) return;
    const end = decodeEnd(frame.payload);
    if (next.stdout !== end.totals.stdout || next.stderr !== end.totals.stderr) {
      throw new MalformedFrame(
        `An end after ${end.totals.stdout} and ${end.totals.stderr} bytes; ${next.stdout} and ${next.stderr} came.`,
      );
    }
    const shellEnd = toShellEnd(end);
    this.way = shellEnd.way;
    this.#endCurrent({ type: 'ended', end: shellEnd });
  }
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
    ...(hello.hasBuiltin ? { way: 'builtin' } : hello.begunCount > 0 ? { way: 'loop' } : {}),
    ...(hello.problem && { problem: hello.problem }),
  };
}
