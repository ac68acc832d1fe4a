import { createHash } from 'node:crypto';
import { encodeWakeUp, isShellfleetError, LIMITS, ShellfleetError, toCanonicalJson } from '@shellfleet/protocol';
import { asArray, asString, retentionOf, throwQueueError } from '@shellfleet/redis';
import { type Sealer, sealPlace } from '@shellfleet/sealing';
import { defineBatchScript } from '../scripts.ts';
import { type BatchAccess, batchMember, runOnBatch } from './access.ts';
import { dropName, expireName, keepName, keepNameFor, readNameTime } from './names.ts';
import { cutPieces, sealPiece } from './pieces.ts';
import type { StoredTask } from './read-batch.ts';
import { requireRoom } from './tenant-room.ts';

// DETACH-1. A batch is claimed, stored piece by piece, and committed. Before the commit no host drives it, and it
//     expires unless its submitter goes on.
// DETACH-2. The batch is noted for the hosts before the commit and after it. So a host finds each committed batch,
//     wherever its submitter dies.
// DETACH-3. What was committed is not removed before its end, whatever answer its submitter has lost.

const claimScript = defineBatchScript('claim');
const storeScript = defineBatchScript('store');
const commitScript = defineBatchScript('commit');
const cancelScript = defineBatchScript('cancel');
const removeScript = defineBatchScript('remove');

/** Time after which what was stored of a batch expires, unless more of it is stored. */
const STORING_MS = 60_000;
/** Characters of the pieces of one call. */
const CALL_CHARS = 1_572_864;

export interface NewBatch {
  /** Id of the submission: a ULID. */
  id: string;
  /** Name of the person who submits it. */
  by: string;
  /** Options of the batch. */
  options: object;
  tasks: Iterable<StoredTask> | AsyncIterable<StoredTask>;
  /**
   * Packed files and directories, by the names that `blobNameOf` returns. They are read after the last task, so the
   * iterable may add those that its tasks need.
   */
  files: ReadonlyMap<string, Buffer>;
}

/** Returns the name of a packed file. Equal contents have one name, which does not reveal them. */
export function blobNameOf(sealer: Sealer, packed: Uint8Array): string {
  const digest = sealer.digest(createHash('sha256').update(packed).digest('hex'));
  return digest.slice(digest.indexOf('.') + 1);
}

interface SealedBatch {
  head: string;
  tasks: [field: string, sealed: string][];
  files: [field: string, sealed: string][];
  /** Number of tasks. */
  count: number;
  bytes: number;
  digest: string;
}

/**
 * Stores a batch under a free name, and lets the hosts know. Resolves with `same` when the name has a batch with the
 * same content. Throws BATCH_TOO_LARGE, QUOTA_EXCEEDED, IDEMPOTENCY_CONFLICT or QUEUE_UNAVAILABLE.
 */
export async function storeBatch(access: BatchAccess, batch: NewBatch): Promise<'stored' | 'same'> {
  const sealed = await sealBatch(access, batch);
  const { head, tasks, files, bytes, digest } = sealed;
  await requireRoom(access, bytes);
  const claim = [batch.id, STORING_MS, head, batch.by, sealed.count, tasks.length, bytes, digest];
  const [claimed, , phase, known] = asArray(await runOnBatch(access, claimScript, claim), claimScript.name);
  if (claimed !== 1 && (known !== digest || phase === 'storing')) throw nameInUse(access, asString(phase));
  if (claimed !== 1) return 'same';
  try {
    await keepNameFor(access, STORING_MS);
    await noteBatch(access);
    await storePieces(access, batch.id, 'tasks', tasks);
    await storePieces(access, batch.id, 'files', files);
    await keepName(access);
    if ((await runOnBatch(access, commitScript, [batch.id, files.length])) !== 1) throw removedMeanwhile(access);
  } catch (error) {
    const removed = await removeIn(access, batch.id, 'storing').catch(() => undefined);
    // The reply to the commit was lost, and hosts may already drive the batch.
    const isCommitted =
      removed === REMOVED.hasOtherState && isShellfleetError(error) && error.code !== 'BATCH_NOT_FOUND';
    if (!isCommitted) throw error;
  }
  await noteBatch(access);
  return 'stored';
}

/** Lets the hosts look at a batch at once. */
export async function noteBatch({ redis, fleet, keys }: BatchAccess): Promise<void> {
  await redis.lpush(fleet.batchesNoted, batchMember(keys)).catch(throwQueueError);
  // Hosts also poll.
  await redis.publish(fleet.sessionsWakeUps, encodeWakeUp({ type: 'batches' })).catch(() => {});
}

async function sealBatch(access: BatchAccess, { id, options, tasks, files }: NewBatch): Promise<SealedBatch> {
  const { sealer, keys } = access;
  const head = sealer.seal(JSON.stringify(options), sealPlace('batch-head', keys, { batch: keys.name, id, part: '' }));
  const hash = createHash('sha256').update(toCanonicalJson(options));
  const sealed: SealedBatch = { head, tasks: [], files: [], count: 0, bytes: head.length, digest: '' };
  const add = (to: SealedBatch['tasks'], field: string, value: string) => {
    sealed.bytes += value.length;
    if (sealed.bytes > LIMITS.detachedBatchBytes) throw tooLarge(keys.name);
    to.push([field, value]);
  };
  const onTask = () => {
    sealed.count++;
  };
  for await (const piece of joinLines(tasks, onTask)) {
    hash.update(piece);
    const part = String(sealed.tasks.length);
    add(sealed.tasks, part, await sealPiece(access, 'batch-tasks', { id, part }, piece));
  }
  for (const [blob, packed] of files) {
    let number = 0;
    for (const piece of cutPieces(packed)) {
      const part = `${blob}.${number++}`;
      add(sealed.files, part, sealer.seal(piece, sealPlace('batch-file', keys, { batch: keys.name, id, part })));
    }
  }
  return { ...sealed, digest: sealer.digest(hash.digest('hex')) };
}

/** Yields the tasks as lines of JSON, in pieces. */
async function* joinLines(tasks: NewBatch['tasks'], onTask: () => void): AsyncGenerator<Buffer> {
  let waiting: Buffer[] = [];
  let bytes = 0;
  const join = () => {
    const joined = Buffer.concat(waiting);
    [waiting, bytes] = [[], 0];
    return cutPieces(joined);
  };
  for await (const task of tasks) {
    onTask();
    const line = Buffer.from(`${JSON.stringify(task)}\n`);
    waiting.push(line);
    bytes += line.byteLength;
    if (bytes >= JOINED_BYTES) yield* join();
  }
  if (bytes > 0) yield* join();
}

/** Bytes of lines that become a piece together. */
const JOINED_BYTES = 524_288;

async function storePieces(
  access: BatchAccess,
  id: string,
  kind: 'tasks' | 'files',
  pieces: SealedBatch['tasks'],
): Promise<void> {
  let call: string[] = [];
  let chars = 0;
  const send = async () => {
    const stored = await runOnBatch(access, storeScript, [id, STORING_MS, kind, ...call]);
    if (stored !== 1) throw removedMeanwhile(access);
    [call, chars] = [[], 0];
  };
  for (const [field, value] of pieces) {
    if (call.length > 0 && chars + value.length > CALL_CHARS) await send();
    call.push(field, value);
    chars += value.length;
  }
  if (call.length > 0) await send();
}

/** Time after the end of a lease in which another host takes the batch, if there is one. */
const UNDRIVEN_MS = 10_000;

/**
 * Ends a batch that nobody has driven, also while it is stored, or that nobody has driven for 10 s, and asks the driver
 * of another one to end it: running tasks end as cancellations. Resolves with `over` for a batch that had ended.
 */
export async function cancelBatch(
  access: BatchAccess,
  id: string,
  reason: string,
): Promise<'ended' | 'asked' | 'over'> {
  const { redis, keys } = access;
  const retention = retentionOf(redis, keys.namespace);
  const reply = await runOnBatch(access, cancelScript, [id, reason, retention, UNDRIVEN_MS]);
  if (reply === 1) await expireName(access);
  return reply === 1 ? 'ended' : reply === 2 ? 'asked' : 'over';
}

/** Removes a batch that has ended, or is unknown by now. Resolves with false when it has not ended. */
export async function removeBatch(access: BatchAccess, id: string): Promise<boolean> {
  return (await removeIn(access, id, 'ended')) !== REMOVED.hasOtherState;
}

/** Replies of the script `remove`. */
const REMOVED = { removed: 1, hasOtherState: 0 } as const;

/** Removes a batch that has a state, and its name from the list of its tenant. Resolves with the script's reply. */
async function removeIn(access: BatchAccess, id: string, phase: 'storing' | 'ended'): Promise<unknown> {
  const time = await readNameTime(access);
  const reply = await runOnBatch(access, removeScript, [id, phase]);
  if (reply === REMOVED.removed) await dropName(access, time);
  return reply;
}

function nameInUse({ keys: { name, tenant } }: BatchAccess, phase: string): ShellfleetError {
  const is = phase === 'ended' ? 'has ended' : `is ${phase}`;
  return new ShellfleetError(
    'IDEMPOTENCY_CONFLICT',
    phase === 'storing'
      ? `A batch of the name ${name} is being submitted. Choose another name, or cancel that batch and remove it, or wait: the name is free a minute after the death of its submitter.`
      : `Another batch has the name ${name} and ${is}. Choose another name, or attach to that batch, or remove it.`,
    { name, tenant, state: phase },
  );
}

function removedMeanwhile({ keys: { name } }: BatchAccess): ShellfleetError {
  return new ShellfleetError(
    'BATCH_NOT_FOUND',
    `The batch ${name} was cancelled or removed while it was submitted, or Redis lost a part of it. Submit it again.`,
    { name },
  );
}

/** Returns the error of a batch that may not be detached. */
export function tooLarge(name: string, path?: string): ShellfleetError {
  const limit = LIMITS.detachedBatchBytes;
  const which = path === undefined ? '' : `, at ${path}`;
  return new ShellfleetError(
    'BATCH_TOO_LARGE',
    `Nothing was submitted: tasks and files of the batch ${name} are over ${limit / 1_048_576} MiB, sealed${which}. Put large files into the image, or fetch them in \`setup\`; or run the batch without detaching it.`,
    { name, limit, ...(path === undefined ? {} : { path }) },
  );
}
