// The terminals on one connection to a keeper. Each has its own shell at a pseudo-terminal.
import {
  decodeTerminalEnd,
  decodeTerminalOutput,
  encodeTerminalOpen,
  encodeTerminalSize,
  entryIdFromBytes,
  entryIdToBytes,
  type Frame,
  FrameType,
  type KeeperTerminalEnd,
  type KeeperTerminalSize,
  MalformedFrame,
  TERMINAL_RESUME_ONLY,
  TERMINAL_WINDOW_BYTES,
} from '@shellfleet/keeper';

/** ULID, like the id of an entry. */
export type TerminalId = string;

export interface ShellTerminalStart extends KeeperTerminalSize {
  id: TerminalId;
  env: Record<string, string>;
  /** Offset before which output is stored. */
  from: number;
  /** Whether the terminal was open before. A keeper that lacks it must not create it. */
  resumeOnly: boolean;
}

export interface TerminalHandlers {
  /** Receives output in order, without gaps, once empty at the opening. `typed` counts input that the terminal took. */
  onOutput(offset: number, bytes: Uint8Array, typed: number): void;
  /** Called after the last output, or at once when the terminal cannot be opened. */
  onEnd(end: KeeperTerminalEnd): void;
}

export interface ShellTerminal {
  /** Sends input. Bytes that were sent before are ignored, by offset. */
  input(offset: number, bytes: Uint8Array): void;
  resize(size: KeeperTerminalSize): void;
  /** Reports that output before `offset` is stored. */
  ack(offset: number): void;
  /** Ends the terminal. After its end, lets the keeper delete it. */
  close(): void;
}

export interface ShellTerminals {
  open(start: ShellTerminalStart, handlers: TerminalHandlers): ShellTerminal;
}

type Send = (frame: Partial<Frame> & { type: number }) => void;

interface Followed extends TerminalHandlers {
  next?: number;
  acked: number;
}

export class KeeperTerminals implements ShellTerminals {
  readonly #send: Send;
  readonly #followed = new Map<TerminalId, Followed>();

  constructor(send: Send) {
    this.#send = send;
  }

  open({ id, env, from, resumeOnly, ...size }: ShellTerminalStart, handlers: TerminalHandlers): ShellTerminal {
    const send = (type: number, rest: Partial<Frame> = {}) => this.#send({ ...rest, type, id: entryIdToBytes(id) });
    const followed: Followed = { onOutput: handlers.onOutput, onEnd: handlers.onEnd, acked: from };
    this.#followed.set(id, followed);
    const flags = resumeOnly ? TERMINAL_RESUME_ONLY : 0;
    send(FrameType.terminalOpen, { flags, offset: from, payload: encodeTerminalOpen(size, env) });
    return {
      input: (offset, payload) => send(FrameType.terminalInput, { offset, payload }),
      resize: (newSize) => send(FrameType.terminalResize, { payload: encodeTerminalSize(newSize) }),
      ack: (offset) => {
        followed.acked = Math.max(followed.acked, offset);
        send(FrameType.ack, { offset });
      },
      close: () => send(FrameType.terminalClose),
    };
  }

  output(frame: Frame): void {
    const followed = this.#followed.get(entryIdFromBytes(frame.id));
    if (followed === undefined) return;
    const { typed, bytes } = decodeTerminalOutput(frame.payload);
    // A keeper that has dropped acknowledged output begins later than requested.
    if (followed.next === undefined) followed.acked = Math.max(followed.acked, frame.offset);
    const next = followed.next ?? frame.offset;
    if (frame.offset !== next) {
      throw new MalformedFrame(`Output of a terminal at ${frame.offset} where ${next} comes next.`);
    }
    followed.next = next + bytes.length;
    // The keeper stays within its window ahead of stored output. More would fill this process's memory.
    if (followed.next - followed.acked > TERMINAL_WINDOW_BYTES) {
      throw new MalformedFrame(`Output of a terminal ${followed.next - followed.acked} bytes ahead of what is stored.`);
    }
    followed.onOutput(frame.offset, bytes, typed);
  }

  end(frame: Frame): void {
    const id = entryIdFromBytes(frame.id);
    const followed = this.#followed.get(id);
    this.#followed.delete(id);
    followed?.onEnd(decodeTerminalEnd(frame.payload));
  }
}
