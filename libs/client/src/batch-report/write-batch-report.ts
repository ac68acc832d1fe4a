import { stat, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { toBatchFileError } from '../batch/batch-file-error.ts';
import { readBatchManifest } from '../batch/manifest-file.ts';
import { replaceInOneStep } from '../batch/replace-file.ts';

export interface BatchReportOptions {
  /** The `out` file of the batch. It may still grow: the report is about the lines that it has. */
  results: string;
  /** File of the report. It is replaced when it exists. A pipe or a device is written to. */
  report: string;
  /** The `out` file of an earlier run with which this one is compared. Default: none. */
  compareWith?: string | undefined;
}

/** Names of batches that nobody named. */
const GENERATED = /^[0-9a-hjkmnp-tv-z]{26}$/;

/**
 * Writes a report about a batch: one file of HTML, which needs no network. The results are read once, in memory that
 * grows by some hundred bytes for each task. Lines that are no results are counted in the report. Throws FILE_….
 */
export async function writeBatchReport({ results, report, compareWith }: BatchReportOptions): Promise<void> {
  // Few callers write reports.
  const [{ ReportCollector }, { TaskTallies }, { factsOf }, { readResults }, { renderPage }] = await Promise.all([
    import('./collect-report.ts'),
    import('./task-tallies.ts'),
    import('./task-facts.ts'),
    import('./read-results.ts'),
    import('./render-page.ts'),
  ]);
  const before = compareWith === undefined ? undefined : new TaskTallies();
  const skippedBefore =
    compareWith === undefined ? 0 : await readResults(compareWith, (result) => before?.add(factsOf(result)));
  const collector = new ReportCollector(before);
  const skipped = await readResults(results, (result) => collector.add(result));
  const manifest = await readBatchManifest(results);
  const page = renderPage(collector.end(), {
    name: manifest === undefined || GENERATED.test(manifest.name) ? basename(results) : manifest.name,
    ...{ earlier: basename(compareWith ?? ''), manifest, skipped, skippedBefore },
  });
  try {
    if (await isSpecial(report)) await writeFile(report, page);
    else await replaceInOneStep(report, (file) => file.appendFile(page));
  } catch (cause) {
    throw toBatchFileError(report, cause);
  }
}

/** Tells whether a path is a pipe or a device, in whose place no file may be put. */
const isSpecial = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => undefined))?.isFile() === false;
