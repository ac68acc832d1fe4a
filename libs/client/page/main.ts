import { fromColumns, type PageData } from '../src/batch-report/page-data.ts';
import { TaskTable } from './task-table.ts';
import { startTimeline } from './timeline-hints.ts';

// The script of a report: it fills the table of tasks, and names the bars of the timeline. Everything else is in the
// page without it. Texts from results reach the document as text alone.

const { tasks: columns, ...data }: PageData = JSON.parse(document.getElementById('data')?.textContent ?? '');
const tasks = fromColumns(columns);
new TaskTable(tasks, data.causes);
startTimeline(tasks, data);
