import type { Terminal } from '@shellfleet/client';
import { tryJson } from '@shellfleet/protocol';
import type { WebSocket } from 'ws';
import { z } from 'zod';
import { CLOSE_CODES } from './close-codes.ts';

/** Bytes that wait for the terminal before no more are read from the client. */
const MOST_WAITING = 65_536;

const size = z.int().min(1).max(10_000);
const controlSchema = z.union([
  z.strictObject({ resize: z.strictObject({ columns: size, rows: size }) }),
  z.strictObject({ end: z.literal(true) }),
]);

/** What a client sends to its terminal, in order, also before the terminal is open. */
export class SocketInput {
  readonly #socket: WebSocket;
  readonly #terminal = Promise.withResolvers<Terminal>();
  #waiting = 0;
  #order: Promise<void> = Promise.resolve();

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data, isBinary) => this.#receive(data as Buffer, isBinary));
  }

  start(terminal: Terminal): void {
    this.#terminal.resolve(terminal);
  }

  #receive(data: Buffer, isBinary: boolean): void {
    this.#waiting += data.byteLength;
    if (this.#waiting > MOST_WAITING) this.#socket.pause();
    // A terminal that has ended takes no more. Its end closes the connection.
    this.#order = this.#order.then(() => this.#pass(data, isBinary).catch(() => {}));
  }

  async #pass(data: Buffer, isBinary: boolean): Promise<void> {
    const terminal = await this.#terminal.promise;
    if (isBinary) await terminal.write(data);
    else this.#control(terminal, data.toString());
    this.#waiting -= data.byteLength;
    if (this.#waiting <= MOST_WAITING) this.#socket.resume();
  }

  #control(terminal: Terminal, text: string): void {
    const { data } = controlSchema.safeParse(tryJson(text));
    if (data === undefined) this.#socket.close(CLOSE_CODES.invalidMessage, 'A text is {resize} or {end}.');
    else if ('end' in data) void terminal.close();
    else terminal.resize(data.resize.rows, data.resize.columns);
  }
}
