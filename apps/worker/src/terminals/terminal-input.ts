import { TERMINAL_WINDOW_BYTES } from '@shellfleet/keeper';
import { TERMINAL_MESSAGE_BYTES } from '@shellfleet/protocol';

/** Counts the input messages that were sent to the keeper, and those that the terminal has taken. */
export class TerminalInput {
  read = 0;
  /** Number of the last message that was taken whole, with all earlier ones. */
  taken = 0;
  #typed = 0;
  #sent = 0;
  #under: { number: number; to: number }[] = [];

  /** Whether another message fits into the keeper's window. */
  get hasRoom(): boolean {
    return this.#sent - this.#typed <= TERMINAL_WINDOW_BYTES - TERMINAL_MESSAGE_BYTES;
  }

  /** Notes that message `number` was sent. `to` counts all input bytes so far; 0 if it has no input. */
  sent(number: number, to: number): void {
    this.read = number;
    this.#sent = Math.max(this.#sent, to);
    this.#under.push({ number, to });
    this.#settle();
  }

  /** Notes how many bytes were taken. Returns whether the window has room again. */
  noteTyped(typed: number): boolean {
    const hadRoom = this.hasRoom;
    this.#typed = Math.max(this.#typed, typed);
    this.#settle();
    return !hadRoom && this.hasRoom;
  }

  /** Resets to the last taken message after a reconnection, since later messages are sent again. */
  restart(): void {
    this.#under = [];
    this.read = this.taken;
    this.#sent = this.#typed;
  }

  #settle(): void {
    while (this.#under[0] !== undefined && this.#under[0].to <= this.#typed) {
      this.taken = this.#under[0].number;
      this.#under.shift();
    }
  }
}
