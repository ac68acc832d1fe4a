import { batchTooLarge, blobNameOf, type StoredTask, storeBatch } from '@shellfleet/mailbox';
import { isShellfleetError, LIMITS, parseOrThrow, ShellfleetError, sessionSpecSchema } from '@shellfleet/protocol';
import type { Tasks } from '../batch/batch.ts';
import { type BatchOptions, batchOptionsSchema } from '../batch/batch-options.ts';
import { checkTask } from '../batch/check-task.ts';
import { IdSet } from '../batch/id-set.ts';
import type { Task } from '../batch/task.ts';
import { inputFiles, toFileName } from '../batch/task-outputs.ts';
import { nameOfUser } from '../connection/name-of-this-user.ts';
import type { FleetView } from '../view.ts';
import { accessTo, type DetachedBatch, findBatch, toDetachedBatch } from './detached-info.ts';
import { isVisibleBelow } from './output-place.ts';
import { packPath } from './pack-path.ts';

/** Options of a batch that is submitted: those of `fleet.batch` without files for its results. */
export type SubmitOptions = Omit<BatchOptions, 'out' | 'overwrite' | 'resumeFrom' | 'only' | 'signal'>;

const OF_A_DRIVER = ['out', 'overwrite', 'resumeFrom', 'only', 'signal'];

/** Stores a batch in the fleet, whose workers drive it. Nothing is stored of a batch that is not valid. */
export async function submitBatch(view: FleetView, tasks: Tasks, options: SubmitOptions): Promise<DetachedBatch> {
  if (view.sealer.signs) throw cannotSign();
  if (!view.interceptors.isEmpty)
    throw invalid(
      'This fleet has interceptors, which a worker that drives a batch cannot run, so nothing was submitted',
    );
  const other = OF_A_DRIVER.find((field) => field in options);
  if (other !== undefined) throw invalid(`${other} is not for a detached batch; \`attach\` writes its results`);
  if (options.spec !== undefined)
    parseOrThrow(sessionSpecSchema, options.spec, 'SESSION_SPEC_INVALID', 'The spec of the batch');
  const parsed = parseOrThrow(batchOptionsSchema, options, 'COMMAND_INVALID', 'The batch');
  const { overwrite: _overwrite, name = view.nextId().toLowerCase(), ...stored } = parsed;
  const access = accessTo(view, name);
  const packed = new PackedFiles(view, name);
  await storeBatch(access, {
    ...{
      id: view.nextId(),
      by: nameOfUser(view),
      options: { ...stored, submittedBy: view.caller },
      files: packed.files,
    },
    tasks: checked(tasks, { ...options, name }, packed),
  });
  return toDetachedBatch(await findBatch(access));
}

/** Yields the tasks with the names of their packed files. */
async function* checked(tasks: Tasks, options: SubmitOptions, packed: PackedFiles): AsyncGenerator<StoredTask> {
  const ids = new IdSet();
  let at = 0;
  for await (const task of typeof tasks === 'function' ? tasks() : tasks) {
    const what = `Nothing was submitted: task ${++at}`;
    checkTask(task, options, what);
    if (!ids.add(task.id)) throw invalid(`${what} has the id of an earlier one, ${JSON.stringify(task.id)}`);
    const named = Object.values(task.outputs ?? {}).map((local) => local.replaceAll('{id}', toFileName(task.id)));
    const refused = named.find((local) => !isVisibleBelow(local));
    if (refused !== undefined)
      throw invalid(
        `${what} has an output at ${refused}. Name a path below the directory where it will be fetched, none of whose parts begins with a dot`,
      );
    yield { task, ...(task.files === undefined ? {} : { blobs: await packed.add(task, options.repeats ?? 1) }) };
  }
}

/** Share of a sealed value that its plain bytes have: three bytes are four characters. */
const PLAIN_SHARE = 0.75;

/** The files of a batch. Each path is packed once, and equal contents are stored once. */
class PackedFiles {
  readonly files = new Map<string, Buffer>();
  readonly #view: FleetView;
  readonly #name: string;
  readonly #blobs = new Map<string, string>();
  #left = Math.floor(LIMITS.detachedBatchBytes * PLAIN_SHARE);

  constructor(view: FleetView, name: string) {
    this.#view = view;
    this.#name = name;
  }

  /** Packs the files of all repeats of a task, and returns their names. */
  async add({ id, files = {} }: Task, repeats: number): Promise<Record<string, string[]>> {
    const blobs: [string, string[]][] = [];
    for (const [path, template] of Object.entries(files)) {
      const count = template.includes('{repeat}') ? repeats : 1;
      const names: string[] = [];
      for (let repeat = 1; repeat <= count; repeat++)
        names.push(await this.#pack(inputFiles({ [path]: template }, id, repeat)[path] ?? ''));
      blobs.push([path, names]);
    }
    return Object.fromEntries(blobs);
  }

  async #pack(local: string): Promise<string> {
    const known = this.#blobs.get(local);
    if (known !== undefined) return known;
    const packed = await packPath(local, this.#left).catch((error: unknown) => {
      throw isShellfleetError(error) && error.code === 'FILE_TOO_LARGE' ? batchTooLarge(this.#name, local) : error;
    });
    const blob = blobNameOf(this.#view.sealer, packed);
    if (!this.files.has(blob)) this.#left -= packed.byteLength;
    this.files.set(blob, packed);
    this.#blobs.set(local, blob);
    return blob;
  }
}

const invalid = (message: string) => new ShellfleetError('COMMAND_INVALID', `${message}.`);

function cannotSign(): ShellfleetError {
  return new ShellfleetError(
    'COMMAND_INVALID',
    'This client signs what it submits, and a worker that drives a batch cannot sign for it. Run the batch without detaching it.',
  );
}
