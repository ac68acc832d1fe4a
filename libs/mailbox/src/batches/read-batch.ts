import { ShellfleetError, tryJson, type WireError, wireErrorSchema } from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import { sealPlace } from '@shellfleet/sealing';
import { type BatchAccess, callOnce, type Retry } from './access.ts';
import { openPiece, outputName } from './pieces.ts';

const STATES = ['storing', 'waiting', 'running', 'ended'] as const;
export type BatchState = (typeof STATES)[number];

/** What is stored of a detached batch in clear. Times are ms by the clock of Redis. */
export interface StoredBatch {
  id: string;
  name: string;
  tenant: string;
  state: BatchState;
  /** Name of the person who submitted it, as the submitter's process says. */
  by: string;
  createdAt: number;
  /** Time at which its first driver began. */
  startedAt: number | undefined;
  endedAt: number | undefined;
  /** Number of tasks, without their repeats. */
  tasks: number;
  /** Bytes of its tasks and files, sealed. */
  bytes: number;
  /** Number of result lines so far. */
  lines: number;
  /** Bytes of its outputs, sealed. */
  outputBytes: number;
  /** Host of its newest driver. */
  host: string | undefined;
  /** Time until which the driver has the lease. */
  leaseUntil: number | undefined;
  /** Reason of a cancellation that was asked for. */
  cancel: string | undefined;
  /** What ended it before its last task. */
  stoppedBy: string | undefined;
  /** How far it is, and its totals: JSON of its driver. */
  progress: unknown;
  totals: unknown;
  /** Why it failed as a whole. */
  failure: WireError | undefined;
}

/** A task as it is stored. It is not checked. */
export interface StoredTask {
  task: unknown;
  /**
   * Names of the packed files by the paths in the sandbox where they go: one for all repeats of the task, or one for
   * each repeat.
   */
  blobs?: Record<string, string[]>;
}

const FIELDS = [
  ...(['id', 'state', 'by', 'createdAt', 'startedAt', 'endedAt', 'tasks', 'bytes', 'lines', 'outputBytes'] as const),
  ...(['host', 'leaseUntil', 'cancel', 'stoppedBy', 'progress', 'totals', 'failure'] as const),
];

/** Reads a batch. Resolves with undefined for an unknown one. Throws QUEUE_UNAVAILABLE. */
export async function readBatch({ redis, sealer, keys }: BatchAccess): Promise<StoredBatch | undefined> {
  const values = await redis.hmget(keys.state, ...FIELDS).catch(throwQueueError);
  const read = (field: (typeof FIELDS)[number]) => values[FIELDS.indexOf(field)] || undefined;
  const numberOf = (field: (typeof FIELDS)[number]) => (read(field) === undefined ? undefined : Number(read(field)));
  const [id, state] = [read('id'), STATES.find((one) => one === read('state'))];
  if (id === undefined || state === undefined) return undefined;
  const failure = read('failure');
  const failurePlace = sealPlace('batch-failure', keys, { batch: keys.name, id, part: '' });
  return {
    ...{ id, name: keys.name, tenant: keys.tenant, state, by: read('by') ?? '' },
    ...{ createdAt: numberOf('createdAt') ?? 0, startedAt: numberOf('startedAt'), endedAt: numberOf('endedAt') },
    ...{ tasks: numberOf('tasks') ?? 0, bytes: numberOf('bytes') ?? 0, lines: numberOf('lines') ?? 0 },
    ...{ outputBytes: numberOf('outputBytes') ?? 0, host: read('host'), leaseUntil: numberOf('leaseUntil') },
    ...{ cancel: read('cancel'), stoppedBy: read('stoppedBy') },
    ...{ progress: tryJson(read('progress') ?? ''), totals: tryJson(read('totals') ?? '') },
    failure:
      failure === undefined ? undefined : wireErrorSchema.safeParse(tryJson(sealer.open(failure, failurePlace))).data,
  };
}

/** Reads the options of a batch, which are not checked. */
export async function readBatchOptions(access: BatchAccess, id: string): Promise<unknown> {
  return readSealedField(access, id, 'head');
}

/** Reads the manifest of a batch, which is not checked. Undefined when its driver has stored none. */
export async function readManifest(access: BatchAccess, id: string): Promise<unknown> {
  return readSealedField(access, id, 'manifest');
}

async function readSealedField({ redis, sealer, keys }: BatchAccess, id: string, field: 'head' | 'manifest') {
  const sealed = await redis.hget(keys.state, field).catch(throwQueueError);
  if (sealed === null) return undefined;
  return tryJson(sealer.open(sealed, sealPlace(`batch-${field}`, keys, { batch: keys.name, id, part: '' })));
}

/**
 * Yields the tasks of a batch in their order. `retry` may repeat each read. Throws BATCH_NOT_FOUND when Redis has not
 * all of them any more.
 */
export async function* readTasks(access: BatchAccess, id: string, retry: Retry = callOnce): AsyncGenerator<StoredTask> {
  const { redis, keys } = access;
  const lines = new LineJoiner();
  for (let number = 0; ; number++) {
    const part = String(number);
    const sealed = await retry(() => redis.hget(keys.tasks, part).catch(throwQueueError));
    if (sealed === null) {
      const read = () => redis.hmget(keys.state, 'id', 'pieces').catch(throwQueueError);
      const [storedId, pieces] = await retry(read);
      if (storedId !== id || Number(pieces) !== number) throw notWhole(access);
      return;
    }
    for (const line of lines.add(await openPiece(access, 'batch-tasks', { id, part }, sealed)))
      yield JSON.parse(line) as StoredTask;
  }
}

/** Yields the pieces of a packed file. `retry` may repeat each read. */
export async function* readBlob(
  { redis, sealer, keys }: BatchAccess,
  id: string,
  blob: string,
  retry: Retry = callOnce,
): AsyncGenerator<Buffer> {
  for (let number = 0; ; number++) {
    const part = `${blob}.${number}`;
    const sealed = await retry(() => redis.hget(keys.files, part).catch(throwQueueError));
    if (sealed === null) return;
    yield sealer.openBytes(sealed, sealPlace('batch-file', keys, { batch: keys.name, id, part }));
  }
}

/** Pieces of results that are read at once. */
const PIECES_AT_ONCE = 8;

/**
 * Yields the result lines so far, from the piece `from` on (0: all). `next` is where a later call continues. It stands
 * behind whole lines only. `retry` may repeat each read. Throws BATCH_NOT_FOUND when Redis has not all of them any
 * more.
 */
export async function* readResultLines(
  access: BatchAccess,
  id: string,
  from = 0,
  retry: Retry = callOnce,
): AsyncGenerator<{ next: number; lines: string[] }> {
  const { redis, keys } = access;
  const joiner = new LineJoiner();
  for (let after = from; ; ) {
    const start = `(${after}-0`;
    const range = () => redis.xrange(keys.results, start, '+', 'COUNT', PIECES_AT_ONCE).catch(throwQueueError);
    const entries = await retry(range);
    for (const [streamId, [, count, , sealed = '']] of entries) {
      const number = Number(streamId.split('-')[0]);
      if (number !== after + 1) throw notWhole(access);
      after = number;
      if (count === '-1') joiner.clear();
      else {
        const lines = joiner.add(await openPiece(access, 'batch-results', { id, part: String(after) }, sealed));
        if (count !== '0') yield { next: after, lines };
      }
    }
    if (entries.length < PIECES_AT_ONCE) break;
  }
  if ((await retry(() => redis.hget(keys.state, 'id').catch(throwQueueError))) !== id) throw notWhole(access);
}

function notWhole({ keys: { name } }: BatchAccess): ShellfleetError {
  return new ShellfleetError(
    'BATCH_NOT_FOUND',
    `Redis has no longer all of the batch ${name}: it was removed, its retention is over, or Redis lost a part of it.`,
    { name },
  );
}

/**
 * Reads an output of a run of a task, packed. `retry` may repeat the read. Resolves with undefined when it is not
 * stored.
 */
export async function readOutput(
  { redis, sealer, keys }: BatchAccess,
  id: string,
  run: string,
  path: string,
  retry: Retry = callOnce,
): Promise<Buffer | undefined> {
  const part = outputName(run, path);
  const sealed = await retry(() => redis.hget(keys.outputs, part).catch(throwQueueError));
  if (sealed === null) return undefined;
  return sealer.openBytes(sealed, sealPlace('batch-output', keys, { batch: keys.name, id, part }));
}

/** Joins pieces to lines. A piece may end within a line. */
class LineJoiner {
  #begun: Buffer[] = [];

  add(piece: Buffer): string[] {
    const end = piece.lastIndexOf(10) + 1;
    if (end > 0) {
      const whole = Buffer.concat([...this.#begun, piece.subarray(0, end)]).toString('utf8');
      this.#begun = end === piece.byteLength ? [] : [piece.subarray(end)];
      return whole.slice(0, -1).split('\n');
    }
    this.#begun.push(piece);
    return [];
  }

  clear(): void {
    this.#begun = [];
  }
}
