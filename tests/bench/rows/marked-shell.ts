import { expectOutput, type Script } from './row.ts';

/**
 * A hand-written shell behind a pipe or a terminal. The script goes to the standard input, followed by a line that
 * prints a mark with the exit code; everything before the mark is the output. A script that prints the mark, reads its
 * standard input or ends the shell breaks this, and nothing limits time or output.
 */
export class MarkedShell {
  readonly #write: (text: string) => void;
  #received = '';
  #turn = 0;
  #waiting: { mark: RegExp; settle: PromiseWithResolvers<string> } | undefined;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  receive(text: string): void {
    this.#received += text;
    const found = this.#waiting?.mark.exec(this.#received);
    if (!found || !this.#waiting) return;
    const { settle } = this.#waiting;
    const output = this.#received.slice(0, found.index);
    this.#received = this.#received.slice(found.index + found[0].length);
    this.#waiting = undefined;
    if (found[1] === '0') settle.resolve(output);
    else settle.reject(new Error(`the script ended with ${found[1]}`));
  }

  /** Runs one script at a time. Resolves with the shell's output. */
  send(script: string): Promise<string> {
    const settle = Promise.withResolvers<string>();
    const turn = ++this.#turn;
    this.#waiting = { mark: new RegExp(`end-of-command-${turn} (\\d+)\\r?\\n`), settle };
    // A terminal may echo the line, so the line does not contain the mark in one piece.
    this.#write(`${script}\nprintf 'end-of-%s-%s %s\\n' command ${turn} $?\n`);
    return settle.promise;
  }

  async run(script: Script): Promise<void> {
    expectOutput(await this.send(script), script);
  }
}
