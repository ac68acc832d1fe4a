import type { FleetView } from '../view.ts';
import type { ParsedBatchOptions } from './batch-options.ts';
import type { BatchResults, BatchStore } from './batch-store.ts';
import { describeBatch, ManifestKeeper } from './describe-batch.ts';
import { DiscardSessions, mayBeKept } from './discard-sessions.ts';
import type { TaskRepeat } from './expand-task.ts';
import { writeManifest } from './manifest-file.ts';
import { type Earlier, noEarlier, ResultsFile, readEarlier } from './results-file.ts';
import type { TaskEnd } from './run-task.ts';
import { NAMED_PLACES } from './task-places.ts';

/** The files that a batch reads (`resumeFrom`) and writes (`out`), if any. */
export class FileStore implements BatchStore {
  readonly places = NAMED_PLACES;
  readonly #view: FleetView;
  readonly #options: ParsedBatchOptions;

  constructor(view: FleetView, options: ParsedBatchOptions) {
    this.#view = view;
    this.#options = options;
  }

  async readEarlier(): Promise<Earlier> {
    const { resumeFrom, only = 'unfinished' } = this.#options;
    return resumeFrom === undefined ? noEarlier() : readEarlier(resumeFrom, only);
  }

  async open(name: string, earlier: Earlier): Promise<BatchResults> {
    const { out } = this.#options;
    return out === undefined ? NOT_KEPT : BatchFiles.open(this.#view, out, name, this.#options, earlier);
  }
}

/** Results that only the caller of the batch gets. */
const NOT_KEPT: BatchResults = { append: async () => {}, [Symbol.asyncDispose]: async () => {} };

/** The results file of a running batch, its manifest, and the sessions that the fleet need not keep because of them. */
class BatchFiles implements BatchResults {
  readonly #results: ResultsFile;
  /** Absent for a pipe or device, which cannot be resumed. */
  readonly #manifest: ManifestKeeper | undefined;
  readonly #discards: DiscardSessions | undefined;

  private constructor(results: ResultsFile, manifest?: ManifestKeeper, discards?: DiscardSessions) {
    this.#results = results;
    this.#manifest = manifest;
    this.#discards = discards;
  }

  static async open(
    view: FleetView,
    out: string,
    name: string,
    options: ParsedBatchOptions,
    earlier: Earlier,
  ): Promise<BatchFiles> {
    const how = out === options.resumeFrom ? 'resume' : options.overwrite ? 'replace' : 'new';
    const manifest = await describeBatch(view, name, options, earlier);
    const results = await ResultsFile.open(out, how, manifest, earlier.which);
    if (!results.isRegular) return new BatchFiles(results);
    const discards = new DiscardSessions(view, results);
    // What is not discarded expires with the retention.
    if (how === 'resume') await discards.addEarlier(earlier.newest).catch(() => {});
    return new BatchFiles(results, new ManifestKeeper(manifest, (changed) => writeManifest(out, changed)), discards);
  }

  /** Appends the line of a task that has ended. */
  async append({ task }: TaskRepeat, { result, used }: TaskEnd): Promise<void> {
    await this.#results.append(result);
    this.#manifest?.noteImages(task?.spec?.image ?? 'default', result);
    if (!mayBeKept(task, result)) await this.#discards?.add(used);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await using _results = this.#results;
    await using _manifest = this.#manifest;
    await using _discards = this.#discards;
  }
}
