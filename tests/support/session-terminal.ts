// A terminal of a session, driven as by a user: types, and waits for text to appear.
import type { Terminal } from '@shellfleet/client';
import { until } from './until.ts';

export class SessionTerminal {
  readonly terminal: Terminal;
  /** The output since the last match. */
  shown = '';

  constructor(terminal: Terminal) {
    this.terminal = terminal;
    void (async () => {
      for await (const bytes of terminal.output()) this.shown += Buffer.from(bytes).toString();
    })();
  }

  type(text: string): Promise<void> {
    return this.terminal.write(text);
  }

  /** Waits for the text. Later calls search only the output after it. */
  async sees(text: string): Promise<void> {
    await until(
      () => this.shown,
      (shown) => shown.includes(text),
    );
    this.shown = this.shown.slice(this.shown.indexOf(text) + text.length);
  }
}
