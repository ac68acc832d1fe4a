// A keeper that listens on TCP, as far as the worker's transport can tell: it answers the handshake and each claim.
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import {
  encodeFrame,
  type Frame,
  FrameDecoder,
  FrameType,
  KEEPER_PROTOCOL_VERSION,
  MAX_TO_KEEPER,
} from '../src/frames.ts';
import { uint32s, uint64s } from '../src/messages.ts';
import { encodeMessage, LinkMessages, MessageDecoder } from '../src/noise/link-messages.ts';
import { NoiseResponder, type ResponderKeys } from './noise-responder.ts';

export const TOKEN_OVER_TCP = '0'.repeat(64);

export interface ListeningKeeperOptions extends ResponderKeys {
  /** Fence of the owner that the keeper has. Claims with a lower one are refused. */
  fence?: number;
  /** Decides about each frame that is no claim. */
  onFrame?(frame: Frame, connection: KeeperSide): void;
  /** Takes a connection before its handshake. Returns true if it needs no other answer. */
  onConnection?(socket: Socket, count: number): boolean;
}

/** The keeper's end of one connection after its handshake. */
export interface KeeperSide {
  socket: Socket;
  send(frame: Partial<Frame> & { type: number }): void;
}

export class ListeningKeeper {
  readonly #options: ListeningKeeperOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  fence: number;
  connections = 0;
  handshakes = 0;

  private constructor(options: ListeningKeeperOptions) {
    this.#options = options;
    this.fence = options.fence ?? 0;
    this.#server = createServer((socket) => this.#receive(socket));
  }

  static async start(options: ListeningKeeperOptions, port = 0): Promise<ListeningKeeper> {
    const keeper = new ListeningKeeper(options);
    await new Promise<void>((resolve) => keeper.#server.listen(port, '127.0.0.1', () => resolve()));
    return keeper;
  }

  get address(): { host: string; port: number } {
    return { host: '127.0.0.1', port: (this.#server.address() as AddressInfo).port };
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #receive(socket: Socket): void {
    this.connections += 1;
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    if (this.#options.onConnection?.(socket, this.connections) === true) return;
    const decoder = new MessageDecoder();
    const open = (bytes: Uint8Array) => {
      const next = decoder.next(bytes);
      if (next === undefined) return;
      socket.off('data', open);
      try {
        const { reply, ...ciphers } = new NoiseResponder(this.#options).reply(next.message);
        this.handshakes += 1;
        socket.write(encodeMessage(reply));
        this.#serve(socket, new LinkMessages(ciphers), next.rest);
      } catch {
        socket.destroy();
      }
    };
    socket.on('data', open);
  }

  #serve(socket: Socket, messages: LinkMessages, early: Uint8Array): void {
    const decoder = new FrameDecoder({ maxPayload: MAX_TO_KEEPER });
    const send: KeeperSide['send'] = (frame) =>
      socket.write(messages.encode(encodeFrame(frame, undefined, this.fence)));
    const receive = (bytes: Uint8Array) => {
      try {
        for (const frame of messages.push(bytes).flatMap((plain) => decoder.push(plain))) {
          if (frame.type === FrameType.claim) {
            this.fence = Math.max(this.fence, frame.fence);
            send({ type: FrameType.hello, payload: helloPayload() });
          } else {
            this.#options.onFrame?.(frame, { socket, send });
          }
        }
      } catch {
        socket.destroy();
      }
    };
    receive(early);
    socket.on('data', receive);
  }
}

function helloPayload(): Buffer {
  const token = Buffer.from(TOKEN_OVER_TCP);
  return Buffer.concat([uint32s(KEEPER_PROTOCOL_VERSION, 0, 1, 0), uint64s(0, 0, 0, 0), token]);
}
