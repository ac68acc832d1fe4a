import {
  encodeFrame,
  type Frame,
  FrameDecoder,
  KEEPER_PROTOCOL_VERSION,
  MAX_TO_KEEPER,
  uint32s,
  uint64s,
} from '@shellfleet/keeper';
import type { Transport } from '../src/shell/transport/transport.ts';

export const KEEPER_TOKEN = 'a'.repeat(64);

interface HelloFields {
  token?: string;
  version?: number;
  state?: number;
  /** Number of shells that the keeper has had. */
  shells?: number;
  /** Number of entries that have begun. */
  begun?: number;
  acked?: [number, number];
}

/** Returns the payload of a HELLO. Default: that of a keeper with a fresh shell. */
export function helloPayload(fields: HelloFields = {}): Buffer {
  const { token = KEEPER_TOKEN, version = KEEPER_PROTOCOL_VERSION, state = 0, shells = 1, begun = 0 } = fields;
  const word = Buffer.alloc(64);
  word.write(token);
  return Buffer.concat([uint32s(version, state, shells, begun), uint64s(0, 0, ...(fields.acked ?? [0, 0])), word]);
}

type Events = Parameters<Transport['open']>[0];

/** A keeper at the other end of a transport, which answers each frame as its test says. */
export class ScriptedKeeper implements Transport {
  readonly heard: Frame[] = [];
  closed = false;
  readonly #decoder = new FrameDecoder({ maxPayload: MAX_TO_KEEPER });
  readonly #fence: number;
  readonly #reply: (frame: Frame, keeper: ScriptedKeeper) => void;
  #events: Events | undefined;

  /** `fence` is that of the frames of the keeper, unless it sends another one. */
  constructor(fence: number, reply: (frame: Frame, keeper: ScriptedKeeper) => void) {
    this.#fence = fence;
    this.#reply = reply;
  }

  open(events: Events): void {
    this.#events = events;
  }

  write(bytes: Uint8Array): void {
    for (const frame of this.#decoder.push(bytes)) {
      this.heard.push(frame);
      queueMicrotask(() => this.#reply(frame, this));
    }
  }

  say(frame: Partial<Frame> & { type: number }): void {
    this.#events?.data(encodeFrame({ fence: this.#fence, ...frame }));
  }

  junk(bytes: Uint8Array): void {
    this.#events?.data(bytes);
  }

  hangUp(): void {
    this.#events?.closed();
  }

  pause(): void {}
  resume(): void {}
  close(): void {
    this.closed = true;
  }
}
