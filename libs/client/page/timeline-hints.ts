import { formatMs } from '../src/batch-report/format.ts';
import type { ListedTask, PageData } from '../src/batch-report/page-data.ts';
import { linkToTasks } from '../src/batch-report/select-tasks.ts';
import { newElement } from './find-element.ts';

type Bars = PageData['bars'][number];

/**
 * Names the bar of the timeline under the pointer. A click leads to its task. By keyboard, the table of tasks has the
 * same.
 */
export function startTimeline(tasks: readonly ListedTask[], { bars, lengthMs }: Omit<PageData, 'tasks'>): void {
  const hint = newElement('div', '', 'hint');
  for (const strip of document.querySelectorAll<SVGElement>('.strip')) {
    const host = bars[Number(strip.dataset.host)];
    const laneHeight = Number(strip.dataset.laneHeight);
    if (host === undefined || host.lane.length === 0) continue;
    const find = (event: MouseEvent) => {
      const { left, top, width } = strip.getBoundingClientRect();
      const msPerPixel = lengthMs / width;
      const lane = Math.floor((event.clientY - top) / laneHeight);
      const index = findBar(host, lane, (event.clientX - left) * msPerPixel, 3 * msPerPixel);
      const task = tasks[host.task[index] ?? -1];
      return task === undefined ? undefined : { task, from: host.from[index] ?? 0, to: host.to[index] ?? 0 };
    };
    strip.addEventListener('pointermove', (event) => {
      const found = find(event);
      strip.toggleAttribute('data-found', found !== undefined);
      if (found === undefined) return hint.remove();
      const { task, from, to } = found;
      hint.replaceChildren(newElement('bdi', task.id), ` ${task.verdict}, +${formatMs(from)}, ${formatMs(to - from)}`);
      strip.after(hint);
      const { left, top } = (strip.parentElement ?? strip).getBoundingClientRect();
      const most = strip.getBoundingClientRect().width - hint.offsetWidth;
      hint.style.left = `${Math.max(0, Math.min(most, event.clientX - left + 12))}px`;
      hint.style.top = `${event.clientY - top + 16}px`;
    });
    strip.addEventListener('pointerleave', () => hint.remove());
    strip.addEventListener('click', (event) => {
      const found = find(event);
      if (found !== undefined) location.hash = linkToTasks({ task: found.task.id });
    });
  }
}

/** Returns the bar of a lane at a time, or the nearest within a distance; else -1. */
function findBar({ lane: lanes, from, to }: Bars, lane: number, ms: number, within: number): number {
  let found = -1;
  let least = within;
  for (const [index, own] of lanes.entries()) {
    if (own !== lane) continue;
    const distance = Math.max((from[index] ?? 0) - ms, ms - (to[index] ?? 0), 0);
    if (distance > least) continue;
    [found, least] = [index, distance];
    if (distance === 0) break;
  }
  return found;
}
