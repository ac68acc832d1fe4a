// A terminal of a session, used as a person would: type, look, wait for what is to be seen.
import type { Terminal } from '@shellfleet/client';
import { until } from './until.ts';

export class SessionTerminal {
  readonly terminal: Terminal;
  /** What was shown since the last thing that was waited for. */
  shown = '';

  constructor(terminal: Terminal) {
    this.terminal = terminal;
    void (async () => {
      for await (const bytes of terminal.output) this.shown += Buffer.from(bytes).toString();
    })();
  }

  type(text: string): Promise<void> {
    return this.terminal.write(text);
  }

  /** Waits for the text, and looks only at what comes after it from then on. */
  async sees(text: string): Promise<void> {
    await until(
      () => this.shown,
      (shown) => shown.includes(text),
    );
    this.shown = this.shown.slice(this.shown.indexOf(text) + text.length);
  }
}
