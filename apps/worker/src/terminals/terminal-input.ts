import { TERMINAL_WINDOW_BYTES } from '@shellfleet/keeper';
import { TERMINAL_MESSAGE_BYTES } from '@shellfleet/protocol';

/** Which messages of a terminal's user are with the keeper, and which of those it has typed. */
export class TerminalInput {
  /** The last message that was given to the keeper. */
  read = 0;
  /** The last one that was typed whole: it, and what is before it, may go. */
  taken = 0;
  #typed = 0;
  #sent = 0;
  #under: { number: number; to: number }[] = [];

  /** Another message fits into what the keeper lets wait. */
  get hasRoom(): boolean {
    return this.#sent - this.#typed <= TERMINAL_WINDOW_BYTES - TERMINAL_MESSAGE_BYTES;
  }

  /** `to`: bytes of all input so far; 0 for what is no input. */
  sent(number: number, to: number): void {
    this.read = number;
    this.#sent = Math.max(this.#sent, to);
    this.#under.push({ number, to });
    this.#settle();
  }

  /** True when there is room for more than before. */
  noteTyped(typed: number): boolean {
    const hadRoom = this.hasRoom;
    this.#typed = Math.max(this.#typed, typed);
    this.#settle();
    return !hadRoom && this.hasRoom;
  }

  /** What was under way may not have arrived: everything that was not typed is given again. */
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
