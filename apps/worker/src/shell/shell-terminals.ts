// The terminals of one connection to a keeper: each a shell of its own at a pseudo-terminal.
import {
  decodeTerminalEnd,
  decodeTerminalOutput,
  encodeTerminalOpen,
  encodeTerminalSize,
  entryIdFromBytes,
  entryIdToBytes,
  type Frame,
  FrameType,
  MalformedFrame,
  TERMINAL_RESUME_ONLY,
  type TerminalEnd,
  type TerminalSize,
} from '@shellfleet/keeper';

/** A ULID, as entries have. */
export type TerminalId = string;

export interface TerminalStart extends TerminalSize {
  id: TerminalId;
  env: Record<string, string>;
  /** Output before it is stored already. */
  from: number;
  /** It was open before: a keeper that does not know it must not make another. */
  resumeOnly: boolean;
}

export interface TerminalHandlers {
  /** In order and without gap. `typed`: how much of the input the terminal has taken. The first call says that it is open. */
  onOutput(offset: number, bytes: Uint8Array, typed: number): void;
  /** After the last output; or at once, when it cannot be opened. */
  onEnd(end: TerminalEnd): void;
}

/** One terminal, on this connection. */
export interface ShellTerminal {
  /** What was sent before is typed once. */
  input(offset: number, bytes: Uint8Array): void;
  resize(size: TerminalSize): void;
  /** Stored up to here. */
  ack(offset: number): void;
  /** Ends it; or, when it has ended, lets the keeper forget it. */
  close(): void;
}

export interface ShellTerminals {
  open(start: TerminalStart, handlers: TerminalHandlers): ShellTerminal;
}

type Send = (frame: Partial<Frame> & { type: number }) => void;

interface Followed extends TerminalHandlers {
  next?: number;
}

export class KeeperTerminals implements ShellTerminals {
  readonly #send: Send;
  readonly #followed = new Map<TerminalId, Followed>();

  constructor(send: Send) {
    this.#send = send;
  }

  open({ id, env, from, resumeOnly, ...size }: TerminalStart, handlers: TerminalHandlers): ShellTerminal {
    const send = (type: number, rest: Partial<Frame> = {}) => this.#send({ ...rest, type, id: entryIdToBytes(id) });
    this.#followed.set(id, { onOutput: handlers.onOutput, onEnd: handlers.onEnd });
    const flags = resumeOnly ? TERMINAL_RESUME_ONLY : 0;
    send(FrameType.terminalOpen, { flags, offset: from, payload: encodeTerminalOpen(size, env) });
    return {
      input: (offset, payload) => send(FrameType.terminalInput, { offset, payload }),
      resize: (newSize) => send(FrameType.terminalResize, { payload: encodeTerminalSize(newSize) }),
      ack: (offset) => send(FrameType.ack, { offset }),
      close: () => send(FrameType.terminalClose),
    };
  }

  output(frame: Frame): void {
    const followed = this.#followed.get(entryIdFromBytes(frame.id));
    if (followed === undefined) return;
    const { typed, bytes } = decodeTerminalOutput(frame.payload);
    const next = followed.next ?? frame.offset;
    if (frame.offset !== next) {
      throw new MalformedFrame(`Output of a terminal at ${frame.offset} where ${next} comes next.`);
    }
    followed.next = next + bytes.length;
    followed.onOutput(frame.offset, bytes, typed);
  }

  end(frame: Frame): void {
    const id = entryIdFromBytes(frame.id);
    const followed = this.#followed.get(id);
    this.#followed.delete(id);
    followed?.onEnd(decodeTerminalEnd(frame.payload));
  }
}
