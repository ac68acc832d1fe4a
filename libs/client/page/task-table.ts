import { formatCount } from '../src/batch-report/format.ts';
import type { ListedTask } from '../src/batch-report/page-data.ts';
import {
  linkToTasks,
  readSelection,
  selectTasks,
  TASK_ORDERS,
  type TaskOrder,
  type TaskSelection,
} from '../src/batch-report/select-tasks.ts';
import { findElement } from './find-element.ts';
import { taskRow } from './task-row.ts';

/** Columns that begin with their greatest value when they are chosen. */
const GREATEST_FIRST: readonly TaskOrder[] = [
  ...(['durationMs', 'queueMs', 'runMs', 'cpuMs', 'peakMemoryBytes', 'outputBytes', 'attempts'] as const),
];

/** Fields of the form that restrict the tasks. */
const FILTERS = ['text', 'verdict', 'host', 'cause', 'change'] as const;

const UNSELECTED = readSelection('#tasks?') as TaskSelection;

/** Shows the tasks in pages. The address has the selection, so that links and the browser's history change it. */
export class TaskTable {
  readonly #tasks: readonly ListedTask[];
  readonly #causes: readonly string[];
  readonly #section = findElement('#tasks', HTMLElement);
  readonly #form = findElement('form', HTMLFormElement, this.#section);
  readonly #fields = new Map(
    [...this.#form.querySelectorAll<HTMLInputElement | HTMLSelectElement>('[name]')].map((own) => [own.name, own]),
  );
  readonly #steps = [...this.#section.querySelectorAll<HTMLButtonElement>('[data-step]')];
  readonly #heads = [...this.#section.querySelectorAll<HTMLElement>('[data-column]')];
  #selection = UNSELECTED;
  /** Places of the selected tasks, in their order. */
  #places: number[] = [];
  #page = 0;

  constructor(tasks: readonly ListedTask[], causes: readonly string[]) {
    this.#tasks = tasks;
    this.#causes = causes;
    this.#form.addEventListener('input', () => this.#change({ ...this.#selection, ...this.#readFilters() }));
    this.#form.addEventListener('submit', (event) => event.preventDefault());
    this.#form.addEventListener('reset', (event) => {
      event.preventDefault();
      this.#change(UNSELECTED);
    });
    for (const button of this.#steps)
      button.addEventListener('click', () => {
        this.#page += Number(button.dataset.step);
        this.#draw();
      });
    for (const head of this.#heads) head.addEventListener('click', () => this.#sortBy(head.dataset.column));
    addEventListener('hashchange', () => this.#followLink());
    this.#select(UNSELECTED);
    this.#followLink();
  }

  #followLink(): void {
    const linked = readSelection(location.hash);
    if (linked === undefined) return;
    this.#select(linked);
    this.#section.scrollIntoView();
    findElement('h2', HTMLElement, this.#section).focus({ preventScroll: true });
  }

  #sortBy(column: string | undefined): void {
    const sort = TASK_ORDERS.find((order) => order === column) ?? UNSELECTED.sort;
    const isSame = sort === this.#selection.sort;
    const descending = isSame ? !this.#selection.descending : GREATEST_FIRST.includes(sort);
    this.#change({ ...this.#selection, sort, descending });
  }

  #readFilters(): Partial<TaskSelection> {
    return Object.fromEntries(FILTERS.map((name) => [name, this.#fields.get(name)?.value ?? '']));
  }

  /** Selects what the reader chose, and puts it into the address without a new entry of the history. */
  #change(next: TaskSelection): void {
    this.#select(next);
    history.replaceState(null, '', linkToTasks(next));
  }

  #select(next: TaskSelection): void {
    this.#selection = next;
    this.#places = selectTasks(this.#tasks, next);
    this.#page = 0;
    for (const name of FILTERS) {
      const field = this.#fields.get(name);
      if (field !== undefined) field.value = next[name];
    }
    this.#draw();
  }

  #draw(): void {
    const rows = Number(this.#fields.get('rows')?.value);
    const begin = this.#page * rows;
    const shown = this.#places.slice(begin, begin + rows).map((place) => this.#tasks[place]);
    const found = shown.filter((task) => task !== undefined);
    const isOne = this.#places.length === 1;
    const body = findElement('tbody', HTMLTableSectionElement, this.#section);
    body.replaceChildren(...found.map((task) => taskRow(task, this.#causes, isOne)));
    findElement('output', HTMLOutputElement, this.#section).textContent = this.#describe(begin, found.length);
    for (const button of this.#steps) {
      const next = this.#page + Number(button.dataset.step);
      button.disabled = next < 0 || next * rows >= this.#places.length;
    }
    const { sort, descending } = this.#selection;
    for (const head of this.#heads) {
      if (head.dataset.column !== sort) head.removeAttribute('aria-sort');
      else head.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
    }
  }

  #describe(begin: number, count: number): string {
    const { task } = this.#selection;
    const which = task === '' ? '' : `, of the task ${task}`;
    if (count === 0) return `No task is listed here${which}`;
    return `${formatCount(begin + 1)}–${formatCount(begin + count)} of ${formatCount(this.#places.length)}${which}`;
  }
}
