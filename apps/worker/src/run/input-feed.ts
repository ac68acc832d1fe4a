import { Notifier } from '@shellfleet/concurrency';
import { INPUT_WINDOW_BYTES } from '@shellfleet/keeper';
import type { Fenced, InputRead } from '@shellfleet/mailbox';
import { ensureShellfleetError, LIMITS, ShellfleetError } from '@shellfleet/protocol';
import type { InputEnd } from '@shellfleet/sealing';
import type { Shell } from '../shell/shell.ts';

// Forwards the open stdin of one entry from the mailbox to the shell.
// INPUT-FEED-1. The mailbox deletes a byte only after the shell's pipe has taken it. A host that adopts the session
//               continues at the pipe's position.
// INPUT-FEED-2. Memory is bounded for input of any size: at most one window of the keeper and one read are under way.
// INPUT-FEED-3. One read at a time. A wake-up, a position from the keeper, or a poll (wake-ups may be lost) starts the
//               next read.
// INPUT-FEED-4. A streaming submitter is gone when its lease has been expired in Redis for GONE_AFTER_MS. Time without
//               Redis does not count, as the lease cannot be renewed then.

const POLL_MS = 1_000;
/** Interval while the submitter's lease is expired. */
const LAPSED_POLL_MS = 250;
const GONE_AFTER_MS = 2_000;
const NOTHING = new Uint8Array(0);

interface InputFeedDeps {
  entryId: string;
  commandId: string;
  /** Reads from the mailbox. Retries while Redis is down, and calls `onAway` then. */
  read(position: { taken: number; from: number; mostBytes: number }, onAway: () => void): Promise<InputRead | Fenced>;
  openChunk(sealed: string): Uint8Array;
  /** Throws when no producer has signed this end. */
  checkEnd(end: InputEnd, signed: string): void;
  /** Ends the command, because its stdin will never be complete. */
  stop(): void;
}

export class InputFeed {
  failure: ShellfleetError | undefined;
  readonly #deps: InputFeedDeps;
  #shell: Shell | undefined;
  /** Bytes that the pipe has taken, and bytes that were sent on this connection. Undefined until the keeper reports. */
  #place: { taken: number; sent: number } | undefined;
  #readerClosed = false;
  #endSent = false;
  #closed = false;
  #lapsedSince: number | undefined;
  #checkedEnd: string | undefined;
  readonly #wakeUps = new Notifier();

  constructor(deps: InputFeedDeps) {
    this.#deps = deps;
    void this.#run().catch((error: unknown) => this.#fail(ensureShellfleetError(error)));
  }

  /** Reports a connection on which the entry was started or resumed. After a resume the keeper reports the position. */
  connected(shell: Shell, how: 'start' | 'resume'): void {
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

  /** Reports that something was written. */
  wakeUp(): void {
    this.#wakeUps.notify();
  }

  close(): void {
    this.#closed = true;
    this.wakeUp();
  }

  async #run(): Promise<void> {
    while (!this.#closed && this.failure === undefined) {
      if (!(await this.#forward())) await this.#wakeUps.wait({ timeoutMs: this.#pollMs });
    }
  }

  /** Reads once and sends the bytes. Returns whether the next read may find more. */
  async #forward(): Promise<boolean> {
    const place = this.#place;
    if (place === undefined || this.#endSent) return false;
    const room = place.taken + INPUT_WINDOW_BYTES - place.sent;
    // A read ends with the chunk that crosses the requested size. So the requested size is the room less one chunk.
    const mostBytes = this.#readerClosed ? 0 : Math.max(0, room - LIMITS.inputChunkBytes + 1);
    const from = place.sent;
    const position = { taken: this.#readerClosed ? Number.MAX_SAFE_INTEGER : place.taken, from, mostBytes };
    const read = await this.#deps.read(position, () => this.#forgetLapse());
    // The connection broke during the read. The next connection reports its position.
    if (this.#closed || this.#place?.sent !== from) return true;
    if (read.type !== 'read') {
      this.close();
      return false;
    }
    // The command reads no more input, so missing input does no harm.
    if (this.#readerClosed) return false;
    if (read.closed !== undefined) this.#checkEnd(read.closed, read);
    if (read.written < from) this.#fail(lostInput(this.#deps.commandId, read.written, from));
    else if (read.closed === 'broken') this.#fail(brokenInput(this.#deps.commandId, read.written));
    else if (this.#isGone(read.lapsedMs)) this.#fail(submitterGone(this.#deps.commandId, read.written));
    else return this.#send(read);
    return false;
  }

  /** Checks the signature of each end once. The end stays until the command has taken all input before it. */
  #checkEnd(closes: 'end' | 'broken', { written, signed }: Extract<InputRead, { type: 'read' }>): void {
    if (signed === this.#checkedEnd) return;
    this.#deps.checkEnd({ closes, bytes: written }, signed);
    this.#checkedEnd = signed;
  }

  #send({ chunks, closed, written }: Extract<InputRead, { type: 'read' }>): boolean {
    const { entryId, openChunk } = this.#deps;
    const place = this.#place;
    if (place === undefined) return true;
    for (const { end, sealed } of chunks) {
      const bytes = openChunk(sealed);
      if (bytes.byteLength < end - place.sent) {
        this.#fail(lostInput(this.#deps.commandId, place.sent, place.sent));
        return false;
      }
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
    else this.#lapsedSince ??= performance.now();
    return this.#lapsedSince !== undefined && performance.now() - this.#lapsedSince >= GONE_AFTER_MS;
  }

  #forgetLapse(): void {
    this.#lapsedSince = undefined;
  }

  #fail(error: ShellfleetError): void {
    if (this.#closed) return;
    this.failure = error;
    this.#deps.stop();
  }

  /** Interval of polls. Undefined after the end was sent, because then only a new connection requires another read. */
  get #pollMs(): number | undefined {
    if (this.#endSent) return undefined;
    return this.#lapsedSince === undefined ? POLL_MS : LAPSED_POLL_MS;
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
