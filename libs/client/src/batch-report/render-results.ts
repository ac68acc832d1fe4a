import type { CauseGroup } from './cause-groups.ts';
import type { ReportNumbers } from './collect-report.ts';
import type { Changes, Comparison, TaskChange } from './compare-runs.ts';
import { formatCount, formatMs, formatNumber, formatShare } from './format.ts';
import { type Html, html } from './html.ts';
import { numberOf, passAtKCurve, stackedBar, tasks } from './render-charts.ts';
import { linkToTasks } from './select-tasks.ts';

/** Causes that are shown, and those of them that are open. */
const MOST_CAUSES = 100;
const OPEN_CAUSES = 5;
/** Changed tasks that are shown of each kind. */
const MOST_CHANGES = 10;

/** Returns the section of what did not pass, by cause. */
export function renderFailures({ causes, tasks: all }: ReportNumbers): Html {
  const shown = causes.slice(0, MOST_CAUSES);
  const rest = causes.slice(MOST_CAUSES).reduce((sum, { count }) => sum + count, 0);
  const body =
    causes.length > 0
      ? html`<p class="muted">${formatCount(causes.length)} ${causes.length === 1 ? 'cause' : 'causes'}, told apart by how the task ended and by the last line, without numbers and names of tasks.</p><ol class="causes">${shown.map((cause, index) => renderCause(cause, index, all))}</ol>`
      : html`<p>Every task passed.</p>`;
  return html`<section id="failures"><h2>What did not pass</h2>${body}
${rest > 0 ? html`<p class="note">${tasks(rest)} with ${formatCount(causes.length - MOST_CAUSES)} further causes are in the table of tasks alone.</p>` : undefined}</section>`;
}

function renderCause(
  { index, title, line, verdict, count, hosts, samples }: CauseGroup,
  place: number,
  all: number,
): Html {
  const byCount = [...hosts].sort((a, b) => b[1] - a[1]);
  const named = byCount.slice(0, 4).map(([host, times]) => `${host} (${formatCount(times)})`);
  const others = byCount.length > 4 ? ` and ${formatCount(byCount.length - 4)} other hosts` : '';
  const texts = samples.map(
    ({ id, text }) =>
      html`<figure><figcaption><a href="${linkToTasks({ task: id })}"><bdi>${id}</bdi></a></figcaption>${text === '' ? html`<p class="muted">no output</p>` : html`<pre>${text}</pre>`}</figure>`,
  );
  return html`<li><details${place < OPEN_CAUSES ? html` open` : undefined}><summary><span class="count ${verdict}">${formatCount(count)}</span><span class="what"><b>${title}</b>${line === '' ? undefined : html` <code>${line}</code>`}</span></summary>
<p><a href="${linkToTasks({ cause: String(index) })}">${count === 1 ? 'Show the task' : `Show the ${formatCount(count)} tasks`}</a> <span class="muted">${formatShare(count / all)} of all${named.length === 0 ? '' : `, on ${named.join(', ')}${others}`}</span></p>${texts}</details></li>`;
}

/** Returns the section about repeats: pass@k, and how many tasks pass always. */
export function renderRepeats(repeats: ReportNumbers['repeats']): Html | undefined {
  if (repeats === undefined) return undefined;
  const { always, sometimes, never } = repeats.consistency;
  const rows = repeats.passAtK.map(
    ({ k, estimate, tasks: counted }) =>
      html`<tr><th scope="row">pass@${k}</th><td>${formatShare(estimate)}</td><td>${formatCount(counted)}</td></tr>`,
  );
  const parts = [
    { kind: 'passed', name: 'always pass', value: always, text: formatCount(always) },
    { kind: 'infrastructure', name: 'sometimes', value: sometimes, text: formatCount(sometimes) },
    { kind: 'failed', name: 'never', value: never, text: formatCount(never) },
  ];
  return html`<section id="repeats"><h2>Repeats</h2><p class="muted">pass@k is the estimated probability that at least one of k repeats of a task passes, without bias: 1 − C(n−c, k) / C(n, k) for c of n repeats, as the mean over the tasks with at least k. Repeats that the infrastructure failed or that were cancelled do not count.</p>
<div class="pair"><div>${passAtKCurve(repeats.passAtK)}</div><table class="small"><thead><tr><th scope="col">k</th><th scope="col">estimate</th><th scope="col">tasks</th></tr></thead><tbody>${rows}</tbody></table></div>
<h3>Tasks by how often they pass</h3>${stackedBar('Tasks by how often they pass', parts)}</section>`;
}

/** Returns the section of what differs from an earlier run. */
export function renderComparison(
  comparison: Comparison | undefined,
  earlier: string,
  isRepeated: boolean,
): Html | undefined {
  if (comparison === undefined) return undefined;
  const { newlyFailing, newlyPassing, slower, faster, scores, medianFactor } = comparison;
  const [fails, passes] = isRepeated ? ['Pass less often', 'Pass more often'] : ['Newly failing', 'Newly passing'];
  const rate = isRepeated ? formatShare : (share: number) => (share === 1 ? 'passed' : 'failed');
  const numbers = [
    numberOf(
      fails,
      html`<span class="${newlyFailing.count > 0 ? 'bad' : 'muted'}">${formatCount(newlyFailing.count)}</span>`,
    ),
    numberOf(
      passes,
      html`<span class="${newlyPassing.count > 0 ? 'good' : 'muted'}">${formatCount(newlyPassing.count)}</span>`,
    ),
    numberOf('Unchanged', formatCount(comparison.unchanged)),
    numberOf('Time of commands', medianFactor === undefined ? '–' : `× ${formatNumber(medianFactor)}`),
    numberOf('Only in this run', formatCount(comparison.added)),
    numberOf('Only in the earlier run', formatCount(comparison.removed)),
    numberOf('End not known', formatCount(comparison.unknown)),
  ];
  return html`<section id="comparison"><h2>Comparison</h2><p class="muted">With the earlier run in ${earlier}. Times are those for which the commands of repeats that passed ran; × is the median factor over the tasks that passed in both runs.</p>
<dl class="tiles">${numbers}</dl><div class="changes">${[
    renderChanges(fails, newlyFailing, rate, 'newly failing'),
    renderChanges(passes, newlyPassing, rate, 'newly passing'),
    renderChanges('Slower', slower, formatMs),
    renderChanges('Faster', faster, formatMs),
    renderChanges('Other score', scores, formatNumber),
  ]}</div></section>`;
}

function renderChanges(
  title: string,
  { count, greatest }: Changes,
  format: (value: number) => string,
  change = '',
): Html | undefined {
  if (count === 0) return undefined;
  const shown = greatest.slice(0, MOST_CHANGES);
  const row = ({ task, before, now }: TaskChange) =>
    html`<tr><td><a href="${linkToTasks({ task })}"><bdi>${task}</bdi></a></td><td>${format(before)}</td><td>${format(now)}</td></tr>`;
  const all = change === '' ? tasks(count) : html`<a href="${linkToTasks({ change })}">${tasks(count)}</a>`;
  const more = count > shown.length ? ` (${shown.length} of them here)` : '';
  return html`<table class="small"><caption>${title}: ${all}<span class="muted">${more}</span></caption><thead><tr><th scope="col">task</th><th scope="col">before</th><th scope="col">now</th></tr></thead><tbody>${shown.map(row)}</tbody></table>`;
}
