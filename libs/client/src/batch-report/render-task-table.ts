import type { ReportNumbers } from './collect-report.ts';
import { formatCount } from './format.ts';
import { type Html, html } from './html.ts';
import { tasks } from './render-charts.ts';
import type { TaskOrder } from './select-tasks.ts';
import { VERDICTS } from './timeline.ts';

const COLUMNS: [TaskOrder, string][] = [
  ['id', 'Task'],
  ['verdict', 'End'],
  ['hostId', 'Host'],
  ['startMs', 'Begin'],
  ['durationMs', 'Duration'],
  ['queueMs', 'Waited'],
  ['runMs', 'Ran'],
  ['cpuMs', 'Processor'],
  ['peakMemoryBytes', 'Memory'],
  ['outputBytes', 'Output'],
  ['score', 'Score'],
  ['attempts', 'Attempts'],
];

/** Returns the section with the table of tasks, which the script fills. */
export function renderTaskTable({ listed, tasks: all, causes, comparison }: ReportNumbers): Html {
  const hosts = [...new Set(listed.tasks.map(({ task }) => task.hostId))]
    .filter((id) => id !== '')
    .sort(new Intl.Collator('en', { numeric: true }).compare);
  const heads = COLUMNS.map(
    ([name, title]) => html`<th scope="col" data-column="${name}"><button type="button">${title}</button></th>`,
  );
  const option = (value: string | number, text: string) => html`<option value="${value}">${text}</option>`;
  const causeOptions = causes
    .slice(0, 200)
    .map(({ index, title, line, count }) => option(index, `${formatCount(count)} × ${title} ${line}`.slice(0, 100)));
  return html`<section id="tasks"><h2 tabindex="-1">Tasks</h2>
${listed.tasks.length < all ? html`<p class="note">${describeLeftOut(listed, all)}</p>` : undefined}
<noscript><p class="note">The table of tasks needs JavaScript. Everything above does not.</p></noscript>
<form class="controls" role="search" aria-label="Tasks">
<label>Search <input type="search" name="text" placeholder="part of a task id" autocomplete="off"></label>
<label>End <select name="verdict">${option('', 'any')}${VERDICTS.map((verdict) => option(verdict, verdict))}</select></label>
<label>Host <select name="host">${option('', 'any')}${hosts.map((id) => option(id, id))}</select></label>
<label>Cause <select name="cause">${option('', 'any')}${causeOptions}</select></label>
${comparison && html`<label>Change <select name="change">${[option('', 'any'), option('newly failing', 'newly failing'), option('newly passing', 'newly passing')]}</select></label>`}
<label>Rows <select name="rows">${[50, 100, 500].map((rows) => option(rows, String(rows)))}</select></label>
<button type="reset">Show all</button>
</form>
<div class="pager"><button type="button" data-step="-1">Back</button> <output aria-live="polite"></output> <button type="button" data-step="1">Next</button></div>
<div class="scroll" role="region" aria-label="Table of tasks" tabindex="0"><table class="tasks"><thead><tr>${heads}</tr></thead><tbody></tbody></table></div>
</section>`;
}

function describeLeftOut(listed: ReportNumbers['listed'], all: number): string {
  const kept = listed.tasks.length;
  const which =
    kept < listed.unpassed
      ? `the first ${formatCount(kept)} of the ${tasks(listed.unpassed)} that did not pass`
      : `the ${tasks(kept)} that did not pass`;
  return `Of ${tasks(all)} this table lists ${which}. The sections above are about all tasks; the results file has every one.`;
}
