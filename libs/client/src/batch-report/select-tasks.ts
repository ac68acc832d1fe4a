import type { ListedTask } from './page-data.ts';

/** Which tasks the table of a report shows, and in which order. An empty text does not restrict. */
export interface TaskSelection {
  /** Part of the id, in any case. */
  text: string;
  verdict: string;
  host: string;
  /** Number of a cause. */
  cause: string;
  /** A TaskDifference. */
  change: string;
  /** Id of a task, with all its repeats. */
  task: string;
  sort: TaskOrder;
  descending: boolean;
}

export const TASK_ORDERS = [
  'id',
  'verdict',
  'hostId',
  'startMs',
  'durationMs',
  'queueMs',
  'runMs',
  'cpuMs',
  'peakMemoryBytes',
  'outputBytes',
  'score',
  'attempts',
] as const satisfies (keyof ListedTask)[];
export type TaskOrder = (typeof TASK_ORDERS)[number];

/** Returns the places of the tasks that are shown, in their order. */
export function selectTasks(tasks: readonly ListedTask[], selection: TaskSelection): number[] {
  const { sort, descending } = selection;
  const places = [...tasks.keys()].filter((place) => isSelected(tasks[place], selection));
  const keys = new Map(places.map((place) => [place, tasks[place]?.[sort] ?? null]));
  return places.sort((a, b) => {
    const [left = null, right = null] = [keys.get(a), keys.get(b)];
    // A task without a value is last in both directions.
    if (left === null || right === null) return left === right ? a - b : left === null ? 1 : -1;
    const order = compareKeys(left, right);
    return order === 0 ? a - b : descending ? -order : order;
  });
}

function isSelected(
  task: ListedTask | undefined,
  { text, verdict, host, cause, change, task: name }: TaskSelection,
): boolean {
  if (task === undefined) return false;
  return (
    (verdict === '' || task.verdict === verdict) &&
    (host === '' || task.hostId === host) &&
    (cause === '' || String(task.cause) === cause) &&
    (change === '' || task.change === change) &&
    (name === '' || task.task === name || task.id === name) &&
    (text === '' || task.id.toLowerCase().includes(text.toLowerCase()))
  );
}

const { compare: compareTexts } = new Intl.Collator('en', { numeric: true });

function compareKeys(left: string | number, right: string | number): number {
  return typeof left === 'number' && typeof right === 'number'
    ? left - right
    : compareTexts(String(left), String(right));
}

const DEFAULT: TaskSelection = {
  ...{ text: '', verdict: '', host: '', cause: '', change: '', task: '', sort: 'startMs', descending: false },
};

/** Returns the selection of a link, such as `#tasks?cause=3`. Undefined for other links. */
export function readSelection(hash: string): TaskSelection | undefined {
  if (!hash.startsWith('#tasks?')) return undefined;
  const given = new URLSearchParams(hash.slice('#tasks?'.length));
  const read = (name: string) => given.get(name) ?? '';
  return {
    ...{ text: read('text'), verdict: read('verdict'), host: read('host'), cause: read('cause'), task: read('task') },
    change: read('change'),
    sort: TASK_ORDERS.find((order) => order === read('sort')) ?? DEFAULT.sort,
    descending: read('descending') === 'true',
  };
}

/** Returns the link to the tasks of a selection. */
export function linkToTasks(selection: Partial<TaskSelection>): string {
  const given = Object.entries(selection).filter(([name, value]) => value !== DEFAULT[name as keyof TaskSelection]);
  return `#tasks?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))}`;
}
