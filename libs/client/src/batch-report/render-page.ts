import { createHash } from 'node:crypto';
import type { BatchManifest } from '../batch/manifest.ts';
import type { Measure, ReportNumbers } from './collect-report.ts';
import type { Distribution } from './distribution.ts';
import { formatBytes, formatCount, formatEdgeMs, formatMs, formatShare } from './format.ts';
import { Html, html, toScriptJson } from './html.ts';
import { type PageData, toColumns } from './page-data.ts';
import { PAGE_SCRIPT } from './page-script.ts';
import { PAGE_STYLE } from './page-style.ts';
import { histogram, numberOf, quantilesOf, stackedBar, tasks } from './render-charts.ts';
import { renderComparison, renderFailures, renderRepeats } from './render-results.ts';
import { renderTaskTable } from './render-task-table.ts';
import { drawnHosts, renderTimeline } from './render-timeline.ts';

/** What a report says beside the numbers. */
export interface ReportTexts {
  /** Name of the batch, or else of the results file. */
  name: string;
  /** The earlier results file. */
  earlier: string;
  manifest: BatchManifest | undefined;
  /** Lines of the results file, and of the earlier one, that are no results. */
  skipped?: number;
  skippedBefore?: number;
}

/** Returns the page, which is complete in itself and cannot connect to anything. */
export function renderPage(numbers: ReportNumbers, texts: ReportTexts): string {
  const { name, earlier, manifest } = texts;
  const data = toScriptJson(toPageData(numbers));
  const sections = [
    { id: 'failures', title: 'What did not pass', body: renderFailures(numbers) },
    {
      id: 'comparison',
      title: 'Comparison',
      body: renderComparison(numbers.comparison, earlier, numbers.repeats !== undefined),
    },
    { id: 'repeats', title: 'Repeats', body: renderRepeats(numbers.repeats) },
    { id: 'timeline', title: 'Timeline', body: renderTimeline(numbers.timeline) },
    { id: 'measures', title: 'Times and usage', body: renderMeasures(numbers) },
    { id: 'tasks', title: 'Tasks', body: renderTaskTable(numbers) },
    { id: 'about', title: 'About', body: renderAbout(manifest) },
  ].filter(({ body }) => body !== undefined);
  const links = sections.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`);
  const policy = `default-src 'none'; script-src '${digest(PAGE_SCRIPT)}'; style-src '${digest(PAGE_STYLE)}'; base-uri 'none'; form-action 'none'`;
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>${name}: ${describeRate(numbers)} passed</title>
<style>${new Html(PAGE_STYLE)}</style>
</head>
<body>
<header>
<h1><bdi>${name}</bdi></h1>
<p class="muted">${describeTime(numbers)}</p>
${renderSkipped(texts)}
<nav aria-label="Sections"><ul>${links}</ul></nav>
</header>
<main>
${renderSummary(numbers)}
${sections.map(({ body }) => body)}
</main>
<script type="application/json" id="data">${data}</script>
<script type="module">${new Html(PAGE_SCRIPT)}</script>
</body>
</html>
`;
  return page.text;
}

const digest = (text: string) => `sha256-${createHash('sha256').update(text).digest('base64')}`;

function toPageData({ listed, causes, timeline }: ReportNumbers): PageData {
  const places = new Map(listed.tasks.map(({ row }, place) => [row, place]));
  const titles: string[] = [];
  for (const { index, title, line } of causes) titles[index] = line === '' ? title : `${title}: ${line}`;
  const hosts = timeline === undefined ? [] : drawnHosts(timeline);
  return {
    tasks: toColumns(listed.tasks.map(({ task }) => task)),
    causes: titles,
    bars: hosts.map(({ hostId, bars = [] }) => ({
      hostId,
      lane: bars.map(({ lane }) => lane),
      from: bars.map(({ from }) => from),
      to: bars.map(({ to }) => to),
      task: bars.map(({ row }) => places.get(row) ?? -1),
    })),
    lengthMs: timeline?.lengthMs ?? 0,
  };
}

function describeRate({ counts, tasks: all }: ReportNumbers): string {
  return all === 0 ? 'nothing' : formatShare(counts.passed / all);
}

function describeTime({ begin, end, tasks: all }: ReportNumbers): string {
  if (all === 0) return 'The results file has no task.';
  const day = (ms: number) => new Date(ms).toISOString().replace('T', ' ').slice(0, 19);
  return `${tasks(all)}, from ${day(begin)} to ${day(end)} UTC (${formatMs(end - begin)})`;
}

function renderSkipped({ earlier, skipped = 0, skippedBefore = 0 }: ReportTexts): Html[] {
  const left = [
    { lines: skipped, file: 'the results file' },
    { lines: skippedBefore, file: earlier },
  ].filter(({ lines }) => lines > 0);
  return left.map(({ lines, file }) => html`<p>Lines of ${file} left out, because they are no results: ${lines}</p>`);
}

function renderSummary({ counts, tasks: all, measures }: ReportNumbers): Html {
  const { durationMs, queueMs, runMs, restMs, cpuMs, peakMemoryBytes, outputBytes } = measures;
  const verdicts = [
    { kind: 'passed', name: 'passed', value: counts.passed, text: formatCount(counts.passed) },
    { kind: 'failed', name: 'failed', value: counts.failed, text: formatCount(counts.failed) },
    {
      kind: 'infrastructure',
      name: 'infrastructure',
      value: counts.infrastructure,
      text: formatCount(counts.infrastructure),
    },
    { kind: 'cancelled', name: 'cancelled', value: counts.cancelled, text: formatCount(counts.cancelled) },
  ];
  const times = [
    { kind: 'queue', name: 'waited for a slot', value: queueMs?.sum ?? 0, text: formatMs(queueMs?.sum ?? 0) },
    { kind: 'run', name: 'commands ran', value: runMs?.sum ?? 0, text: formatMs(runMs?.sum ?? 0) },
    { kind: 'rest', name: 'everything else', value: restMs?.sum ?? 0, text: formatMs(restMs?.sum ?? 0) },
  ];
  const tiles = [
    numberOf('Passed', html`<span class="good">${all === 0 ? '–' : formatShare(counts.passed / all)}</span>`),
    numberOf('Median task', durationMs === undefined ? '–' : formatMs(durationMs.median)),
    numberOf('Slowest task', durationMs === undefined ? '–' : formatMs(durationMs.most)),
    numberOf('Median wait for a slot', queueMs === undefined ? '–' : formatMs(queueMs.median)),
    numberOf('Processor time', cpuMs === undefined ? notMeasured : formatMs(cpuMs.sum)),
    numberOf('Peak memory of a task', peakMemoryBytes === undefined ? notMeasured : formatBytes(peakMemoryBytes.most)),
    numberOf('Output', formatBytes(outputBytes?.sum ?? 0)),
  ];
  return html`<section id="summary"><h2 class="unseen">Summary</h2><dl class="tiles">${tiles}</dl>
${stackedBar('Tasks by how they ended', verdicts)}
<h3>Where the time of all tasks went</h3>${stackedBar('Where the time of all tasks went', times)}
<p class="muted">The wait for a slot is that of the commands; when <code>files</code> are uploaded first, that wait counts as everything else, as do opening shells, moving files, storing Results and earlier attempts.</p></section>`;
}

const notMeasured = html`<span class="muted">not measured</span>`;

const formatEdgeBytes = (bytes: number) => formatBytes(bytes);
const CHARTS: {
  measure: Measure;
  title: string;
  edge: (value: number) => string;
  format: (value: number) => string;
}[] = [
  { measure: 'durationMs', title: 'Duration of a task', edge: formatEdgeMs, format: formatMs },
  { measure: 'queueMs', title: 'Wait for a slot', edge: formatEdgeMs, format: formatMs },
  { measure: 'runMs', title: 'Commands ran', edge: formatEdgeMs, format: formatMs },
  { measure: 'cpuMs', title: 'Processor time', edge: formatEdgeMs, format: formatMs },
  { measure: 'peakMemoryBytes', title: 'Peak memory', edge: formatEdgeBytes, format: formatBytes },
  { measure: 'outputBytes', title: 'Output', edge: formatEdgeBytes, format: formatBytes },
];

function renderMeasures({ measures, tasks: all }: ReportNumbers): Html {
  const charts = CHARTS.map(({ measure, title, edge, format }) => {
    const distribution = measures[measure];
    if (distribution === undefined)
      return html`<figure class="measure"><figcaption>${title}</figcaption><p class="muted">not measured</p></figure>`;
    return html`<figure class="measure"><figcaption>${title} <span class="muted">${describeMeasured(distribution, all)}</span></figcaption>${histogram(title, distribution, edge)}${quantilesOf(distribution, format)}</figure>`;
  });
  return html`<section id="measures"><h2>Times and usage</h2><div class="measures">${charts}</div></section>`;
}

function describeMeasured({ count, isLogarithmic }: Distribution, all: number): string {
  const notes = [
    isLogarithmic ? 'logarithmic' : '',
    count < all ? `measured for ${tasks(count)} of ${formatCount(all)}` : '',
  ];
  return notes.filter((note) => note !== '').join(', ');
}

function renderAbout(manifest: BatchManifest | undefined): Html | undefined {
  if (manifest === undefined) return undefined;
  const { drivers, tasks: source, options, hosts, images } = manifest;
  const last = drivers.at(-1);
  const rows: [string, string | Html | undefined][] = [
    ['Batch', manifest.name],
    ['Tasks', source && html`${source.file}, ${tasks(source.count)}, <code>${source.digest}</code>`],
    ['Driver', last && `${last.machine}, client ${last.client}, protocol ${last.protocol}, Node.js ${last.node}`],
    ['Drivers', drivers.length > 1 ? `${drivers.length}: the batch was resumed` : undefined],
    ['Concurrency, repeats', `${String(options.concurrency ?? '')}, ${String(options.repeats ?? '')}`],
    ['Hosts', hosts.length === 0 ? undefined : hosts.map(({ id, version }) => `${id} (${version})`).join(', ')],
    ...Object.entries(images).map(([image, digests]): [string, Html] => [
      `Image ${image}`,
      html`<code>${digests.join(', ')}</code>`,
    ]),
    ['Configuration', manifest.configuration && `revision ${manifest.configuration.revision}`],
  ];
  const shown = rows.flatMap(([name, value]) => (value === undefined ? [] : [html`<dt>${name}</dt><dd>${value}</dd>`]));
  return html`<section id="about"><h2>About</h2><dl class="about">${shown}</dl></section>`;
}
