import { INPUT_WINDOW_BYTES } from '@shellfleet/keeper';
import type { Fenced, InputRead } from '@shellfleet/mailbox';
import { ensureShellfleetError, LIMITS, ShellfleetError } from '@shellfleet/protocol';
import type { LiveShell } from '../shell/live-shell.ts';
import type { InputListener } from './run-on-shell.ts';

// One entry's open stdin, from the mailbox to the shell.
//
// N1. The mailbox forgets a byte only when the shell's pipe was given it: whoever takes over goes on where the pipe is.
// N2. At most the keeper's window is under way, and one reading in here: memory is bounded whatever is written.
// N3. One reading at a time. The bell and the keeper's answers ask for the next, and so does the time, as bells may be lost.
// N4. A submitter that streams counts as gone when its lease was seen to have run out over some time of answers: while Redis was away,
//     it could not renew it.

const POLL_MS = 1_000;
const LOOK_CLOSELY_MS = 250;
const GONE_AFTER_MS = 2_000;
const NOTHING = new Uint8Array(0);

interface InputFeedDeps {
  entryId: string;
  commandId: string;
  /** Repeats until Redis answers; `onAway` when it does not. */
  read(position: { taken: number; from: number; mostBytes: number }, onAway: () => void): Promise<InputRead | Fenced>;
  openChunk(sealed: string): Uint8Array;
  /** The stdin will never be whole: ends the command. */
  stop(): void;
}

export class InputFeed implements InputListener {
  /** Why the command was stopped. */
  failure: ShellfleetError | undefined;
  readonly #deps: InputFeedDeps;
  #shell: LiveShell | undefined;
  /** On this connection: where the pipe is, and up to where bytes are under way. Unknown until the keeper has said it. */
  #place: { taken: number; sent: number } | undefined;
  #readerClosed = false;
  #endSent = false;
  #closed = false;
  #lapsedSince: number | undefined;
  #rung = false;
  #wake: (() => void) | undefined;

  constructor(deps: InputFeedDeps) {
    this.#deps = deps;
    void this.#run().catch((error: unknown) => this.#fail(ensureShellfleetError(error)));
  }

  connected(shell: LiveShell, how: 'start' | 'resume'): void {
    this.#shell = shell;
    this.#place = how === 'start' ? { taken: 0, sent: 0 } : undefined;
    this.#endSent = false;
    if (this.failure !== undefined) this.#deps.stop();
    this.wakeUp();
  }

  taken(offset: number, readerClosed: boolean): void {
    this.#place = { taken: offset, sent: Math.max(offset, this.#place?.sent ?? 0) };
    this.#readerClosed = readerClosed;
    this.wakeUp();
  }

  /** Something was written. */
  wakeUp(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** The entry has ended. */
  close(): void {
    this.#closed = true;
    this.wakeUp();
  }

  async #run(): Promise<void> {
    while (!this.#closed && this.failure === undefined) {
      this.#rung = false;
      const more = await this.#forward();
      if (!more && !this.#rung) await this.#rest();
    }
  }

  /** Reads once and sends what it brought. True: there may be more at once. */
  async #forward(): Promise<boolean> {
    const place = this.#place;
    if (place === undefined || this.#endSent) return false;
    const room = place.taken + INPUT_WINDOW_BYTES - place.sent;
    // A reading ends with the chunk that reaches beyond what was asked for: so it fits.
    const mostBytes = this.#readerClosed ? 0 : Math.max(0, room - LIMITS.inputChunkBytes + 1);
    const from = place.sent;
    const position = { taken: this.#readerClosed ? Number.MAX_SAFE_INTEGER : place.taken, from, mostBytes };
    const read = await this.#deps.read(position, () => this.#forgetLapse());
    // Of a connection that has ended meanwhile: the next one says where it is.
    if (this.#closed || this.#place?.sent !== from) return true;
    if (read.type !== 'read') {
      this.close();
      return false;
    }
    // Input that the command will not read cannot be incomplete for it.
    if (this.#readerClosed) return false;
    if (read.written < from) this.#fail(lostInput(this.#deps.commandId, read.written, from));
    else if (read.closed === 'broken') this.#fail(brokenInput(this.#deps.commandId, read.written));
    else if (this.#isGone(read.lapsedMs)) this.#fail(submitterGone(this.#deps.commandId, read.written));
    else return this.#send(read);
    return false;
  }

  #send({ chunks, closed, written }: Extract<InputRead, { type: 'read' }>): boolean {
    const { entryId, openChunk } = this.#deps;
    const place = this.#place;
    if (place === undefined) return true;
    for (const { end, sealed } of chunks) {
      const bytes = openChunk(sealed);
      const missing = bytes.subarray(bytes.byteLength - (end - place.sent));
      this.#shell?.input(entryId, place.sent, missing, false);
      place.sent = end;
    }
    if (closed === 'end' && place.sent === written) {
      this.#shell?.input(entryId, place.sent, NOTHING, true);
      this.#endSent = true;
    }
    return chunks.length > 0;
  }

  #isGone(lapsedMs: number): boolean {
    if (lapsedMs === 0) this.#forgetLapse();
    else this.#lapsedSince ??= Date.now();
    return this.#lapsedSince !== undefined && Date.now() - this.#lapsedSince >= GONE_AFTER_MS;
  }

  #forgetLapse(): void {
    this.#lapsedSince = undefined;
  }

  #fail(error: ShellfleetError): void {
    if (this.#closed) return;
    this.failure = error;
    this.#deps.stop();
  }

  /** Until something has changed. Of a stdin that was sent to its end only a new connection can be that. */
  async #rest(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const pollMs = this.#lapsedSince === undefined ? POLL_MS : LOOK_CLOSELY_MS;
    const timer = this.#endSent ? undefined : setTimeout(resolve, pollMs);
    await promise;
    this.#wake = undefined;
    clearTimeout(timer);
  }
}

function submitterGone(commandId: string, written: number): ShellfleetError {
  return incomplete(commandId, written, 'the process that streamed it went away');
}

function brokenInput(commandId: string, written: number): ShellfleetError {
  return incomplete(commandId, written, 'its source failed where it was streamed from');
}

function lostInput(commandId: string, written: number, sent: number): ShellfleetError {
  return incomplete(commandId, Math.min(written, sent), 'Redis has lost the rest');
}

function incomplete(commandId: string, bytes: number, why: string): ShellfleetError {
  const message = `The stdin of command ${commandId} is incomplete: ${why}, ${bytes} bytes after its beginning. The command was stopped; submit it again if that is safe.`;
  return new ShellfleetError('STDIN_INCOMPLETE', message, { commandId, bytes });
}
