import { emitKeypressEvents } from 'node:readline';
import type { Config } from '../config.ts';
import { ENDING_SIGNALS } from './ending-signals.ts';
import { exitCodeOfSignal } from './exit-codes.ts';
import type { CliOutput } from './terminal.ts';

// Control sequences that enter the alternate screen and hide the cursor, and that undo both.
const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l\r';
const HOME = '\u001b[H';
const CLEAR_TO_END_OF_ROW = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';
const BELL = '\u0007';

export interface KeyPress {
  /** Name of the key as node:readline has it: `return`, `up`, `escape`, …; absent for some characters. */
  name?: string | undefined;
  ctrl?: boolean | undefined;
  /** Character of the key, if it has one. */
  text?: string | undefined;
}

export interface Screen {
  /** Returns at most `rows` rows, each of at most `columns` columns beside its control sequences. */
  draw(rows: number, columns: number): readonly string[];
  press(key: KeyPress): void;
  /** Keeps the screen up to date until `signal` aborts. A rejection ends the screen. */
  follow(signal: AbortSignal): Promise<void>;
}

export interface ScreenControls {
  /** Draws the screen soon, once for several changes that arrive together. */
  draw(how?: { rings?: boolean }): void;
  leave(exitCode: number): void;
}

/** Returns true at a terminal that can draw a screen, with a person at its keyboard. */
export const canShowFullScreen = ({ env }: Config) =>
  process.stdin.isTTY === true && process.stdout.isTTY === true && env.TERM !== 'dumb';

/** Shows a screen at this terminal until it leaves or a signal ends it. Returns the exit code. */
export async function showFullScreen(
  terminal: CliOutput,
  create: (controls: ScreenControls) => Screen,
): Promise<number> {
  const left = Promise.withResolvers<number>();
  const stopped = new AbortController();
  let isDrawing = false;
  let ringsNext = false;
  const draw = ({ rings = false } = {}) => {
    ringsNext ||= rings;
    if (isDrawing) return;
    isDrawing = true;
    setImmediate(() => {
      isDrawing = false;
      if (stopped.signal.aborted) return;
      const { rows, columns } = localSize();
      // A row that fills the last column would lose its end.
      const drawn = screen.draw(rows, columns - 1).map((row) => `${row}${CLEAR_TO_END_OF_ROW}`);
      void terminal.write('stdout', `${HOME}${drawn.join('\r\n')}${CLEAR_BELOW}${ringsNext ? BELL : ''}`);
      ringsNext = false;
    });
  };
  const screen = create({ draw, leave: left.resolve });
  const onKey = (text: string | undefined, { name, ctrl }: { name?: string; ctrl?: boolean } = {}) => {
    screen.press({ name, ctrl, text });
    draw();
  };
  const redraw = () => draw();
  const leaveBySignal = (signal: NodeJS.Signals) => left.resolve(exitCodeOfSignal(signal));
  const onEnd = () => leaveBySignal('SIGHUP');
  const { stdin, stdout } = process;
  for (const signal of ENDING_SIGNALS) process.on(signal, leaveBySignal);
  terminal.readerGone.addEventListener('abort', onEnd);
  stdout.on('resize', redraw);
  emitKeypressEvents(stdin);
  stdin.on('keypress', onKey).on('end', onEnd).on('error', onEnd);
  let following: Promise<void> | undefined;
  try {
    stdin.setRawMode(true);
    stdin.resume();
    stdout.write(ENTER);
    draw();
    following = screen.follow(stopped.signal);
    following.catch(left.reject);
    return await left.promise;
  } finally {
    stopped.abort();
    stdin.off('keypress', onKey).pause();
    stdout.off('resize', redraw);
    stdin.setRawMode(false);
    stdout.write(LEAVE);
    await following?.catch(() => {});
    for (const signal of ENDING_SIGNALS) process.off(signal, leaveBySignal);
  }
}

/** Returns the size of the terminal, or 24 by 80 if it is unknown. */
function localSize(): { rows: number; columns: number } {
  return { rows: process.stdout.rows || 24, columns: process.stdout.columns || 80 };
}
