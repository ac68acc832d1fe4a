import { formatBytes, formatCount, formatMs, formatNumber } from '../src/batch-report/format.ts';
import type { ListedTask } from '../src/batch-report/page-data.ts';
import { newElement } from './find-element.ts';

/** Returns the row of a task. If it did not pass, a button shows its cause and its last lines below the row. */
export function taskRow(task: ListedTask, causes: readonly string[], isOpen: boolean): HTMLTableRowElement {
  const { id, verdict, hostId, startMs, durationMs, queueMs, runMs, cpuMs, peakMemoryBytes, outputBytes, score } = task;
  const row = newElement('tr');
  const name = newElement('bdi', id);
  const first = newElement('td', [name]);
  const end = newElement('td', [newElement('span', verdict, `end ${verdict}`)]);
  const texts = [
    hostId === '' ? '–' : hostId,
    `+${formatMs(startMs)}`,
    ...[durationMs, queueMs, runMs].map(formatMs),
    cpuMs === null ? '–' : formatMs(cpuMs),
    peakMemoryBytes === null ? '–' : formatBytes(peakMemoryBytes),
    formatBytes(outputBytes),
    score === null ? '–' : formatNumber(score),
    formatCount(task.attempts),
  ];
  row.append(first, end, ...texts.map((text) => newElement('td', text)));
  if (task.cause !== -1) addDetails(row, first, task, causes[task.cause] ?? '', isOpen);
  return row;
}

function addDetails(
  row: HTMLTableRowElement,
  first: HTMLTableCellElement,
  task: ListedTask,
  cause: string,
  isOpen: boolean,
): void {
  const button = newElement('button', [newElement('bdi', task.id)]);
  button.type = 'button';
  first.replaceChildren(button);
  let more: HTMLTableRowElement | undefined;
  const toggle = () => {
    if (more === undefined) {
      more = detailsRow(task, cause, row.cells.length);
      row.after(more);
    } else {
      more.remove();
      more = undefined;
    }
    button.setAttribute('aria-expanded', String(more !== undefined));
  };
  button.setAttribute('aria-expanded', 'false');
  button.addEventListener('click', toggle);
  // The row is in the table only after this call.
  if (isOpen) queueMicrotask(toggle);
}

function detailsRow({ text }: ListedTask, cause: string, columns: number): HTMLTableRowElement {
  const about = newElement('td', [newElement('p', cause)]);
  about.colSpan = columns;
  about.append(text ? newElement('pre', text) : newElement('p', 'The results file has its output.', 'muted'));
  return newElement('tr', [about], 'more');
}
