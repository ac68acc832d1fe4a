import { setTimeout as delay } from 'node:timers/promises';
import type { FleetLoad } from '@shellfleet/client';
import { ensureShellfleetError, toPrintable } from '@shellfleet/protocol';
import type { KeyPress, Screen, ScreenControls } from '../full-screen.ts';
import type { CliOutput } from '../terminal.ts';
import { drawLoad, type LoadRow } from './draw-load.ts';
import { cutRow } from './fit-table.ts';

interface LoadScreenOptions {
  read(): Promise<FleetLoad>;
  everyMs: number;
  colors: CliOutput['colors'];
}

/** Shows the newest load. If it cannot be read, says so above the last one, and tries again. */
export class LoadScreen implements Screen {
  readonly #controls: ScreenControls;
  readonly #options: LoadScreenOptions;
  #load: FleetLoad | undefined;
  #problem = '';

  constructor(controls: ScreenControls, options: LoadScreenOptions) {
    this.#controls = controls;
    this.#options = options;
  }

  draw(rows: number, columns: number): string[] {
    const head: LoadRow[] = this.#problem === '' ? [] : [{ text: cutRow(`! ${this.#problem}`, columns), tone: 'bad' }];
    const size = { height: rows - head.length - 1, width: columns };
    const drawn = this.#load === undefined ? [] : drawLoad(this.#load, size);
    return [...[...head, ...drawn].map((row) => this.#paint(row)), cutRow('q: leave', columns)];
  }

  press({ name, ctrl, text }: KeyPress): void {
    if (text === 'q' || (ctrl && (name === 'c' || name === 'd'))) this.#controls.leave(0);
  }

  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        this.#load = await this.#options.read();
        this.#problem = '';
      } catch (error) {
        this.#problem = toPrintable(ensureShellfleetError(error).message);
      }
      this.#controls.draw();
      await delay(this.#options.everyMs, undefined, { signal }).catch(() => {});
    }
  }

  #paint({ text, tone }: LoadRow): string {
    const { bold, yellow } = this.#options.colors;
    if (tone === 'plain') return text;
    return tone === 'head' ? bold(text) : yellow(text);
  }
}
