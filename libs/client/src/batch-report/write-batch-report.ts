import { basename } from 'node:path';
import { toBatchFileError } from '../batch/batch-file-error.ts';
import { readBatchManifest } from '../batch/manifest-file.ts';
import { replaceInOneStep } from '../batch/replace-file.ts';
import { readBatchResults } from '../batch/results-file.ts';

export interface BatchReportOptions {
  /** The `out` file of the batch. It may still grow: the report is about the lines that it has. */
  results: string;
  /** File of the report. It is replaced when it exists. */
  report: string;
  /** The `out` file of an earlier run with which this one is compared. Default: none. */
  compareWith?: string | undefined;
}

/** Names of batches that nobody named. */
const GENERATED = /^[0-9a-hjkmnp-tv-z]{26}$/;

/**
 * Writes a report about a batch: one file of HTML, which needs no network. The results are read once, in memory that
 * grows by some hundred bytes for each task. Throws FILE_….
 */
export async function writeBatchReport({ results, report, compareWith }: BatchReportOptions): Promise<void> {
  // Few callers write reports.
  const [{ ReportCollector }, { TaskTallies }, { factsOf }, { renderPage }] = await Promise.all([
    import('./collect-report.ts'),
    import('./task-tallies.ts'),
    import('./task-facts.ts'),
    import('./render-page.ts'),
  ]);
  const before = compareWith === undefined ? undefined : new TaskTallies();
  if (compareWith !== undefined) for await (const result of readBatchResults(compareWith)) before?.add(factsOf(result));
  const collector = new ReportCollector(before);
  for await (const result of readBatchResults(results)) collector.add(result);
  const manifest = await readBatchManifest(results);
  const page = renderPage(collector.end(), {
    name: manifest === undefined || GENERATED.test(manifest.name) ? basename(results) : manifest.name,
    ...{ earlier: basename(compareWith ?? ''), manifest },
  });
  try {
    await replaceInOneStep(report, (file) => file.appendFile(page));
  } catch (cause) {
    throw toBatchFileError(report, cause);
  }
}
