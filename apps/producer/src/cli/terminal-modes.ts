const ESCAPE = '\u001b';
const CHANGE = new RegExp(`${ESCAPE}\\[\\?([\\d;]{1,64})([hl])`, 'g');
const UNFINISHED = new RegExp(`${ESCAPE}(?:\\[(?:\\?[\\d;]{0,64})?)?$`);
/** Modes that are on by default: the cursor is shown, lines wrap. */
const ON_BEFORE = new Set(['7', '25']);

/** Tracks terminal modes that programs have set: alternate screen, mouse, bracketed paste. */
export class TerminalModes {
  readonly #changed = new Map<string, boolean>();
  #rest = '';

  push(shown: Uint8Array): void {
    const text = this.#rest + Buffer.from(shown).toString('latin1');
    for (const [, modes = '', to] of text.matchAll(CHANGE)) {
      for (const mode of modes.split(';')) this.#set(mode, to === 'h');
    }
    this.#rest = UNFINISHED.exec(text)?.[0] ?? '';
  }

  /** Returns control sequences that reset these modes. */
  undo(): string {
    const back = [...this.#changed].map(([mode, on]) => `\u001b[?${mode}${on ? 'l' : 'h'}`);
    return back.length === 0 ? '' : `${back.join('')}\u001b[0m`;
  }

  #set(mode: string, on: boolean): void {
    if (on === ON_BEFORE.has(mode)) this.#changed.delete(mode);
    else this.#changed.set(mode, on);
  }
}
