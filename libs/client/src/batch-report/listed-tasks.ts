import type { ListedTask } from './page-data.ts';

/** Tasks that a page lists. */
const MOST_LISTED = 20_000;

/** Characters of all last lines together, so that a page stays small enough to open. */
const MOST_TEXT = 4 * 2 ** 20;

/** The tasks that a report lists: all of them, or, when they are too many, the first that did not pass. */
export class ListedTasks {
  readonly #most: number;
  #tasks: { row: number; task: ListedTask }[] = [];
  #count = 0;
  #unpassed = 0;
  #textLeft = MOST_TEXT;

  constructor(most = MOST_LISTED) {
    this.#most = most;
  }

  /** Tasks that were added, and those of them that did not pass. */
  get count(): number {
    return this.#count;
  }

  get unpassed(): number {
    return this.#unpassed;
  }

  add(task: ListedTask): void {
    const row = this.#count++;
    if (task.verdict !== 'passed') this.#unpassed++;
    if (this.#count === this.#most + 1) this.#tasks = this.#tasks.filter((one) => one.task.verdict !== 'passed');
    const isLeftOut = this.#count > this.#most && (task.verdict === 'passed' || this.#unpassed > this.#most);
    if (isLeftOut) return;
    const { text = '', ...rest } = task;
    const showsText = text !== '' && text.length <= this.#textLeft;
    if (showsText) this.#textLeft -= text.length;
    this.#tasks.push({ row, task: showsText ? task : rest });
  }

  /** Returns the tasks in the order of the results file, each with its place there. */
  get tasks(): readonly { row: number; task: ListedTask }[] {
    return this.#tasks;
  }
}
