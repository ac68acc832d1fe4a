import { encodeWakeUp, LIMITS, ShellfleetError, type WireError } from '@shellfleet/protocol';
import {
  asArray,
  asString,
  retentionOf,
  runScript,
  type Script,
  type ScriptArgument,
  throwQueueError,
} from '@shellfleet/redis';
import { sealPlace } from '@shellfleet/sealing';
import { defineBatchScript } from '../scripts.ts';
import { type BatchLease, batchMember, callOnce, type Retry, runOnBatch } from './access.ts';
import { expireName, putOffScript } from './names.ts';
import { cutPieces, outputName, sealPiece } from './pieces.ts';

const renewScript = defineBatchScript('renew');
const appendScript = defineBatchScript('append');
const storeOutputScript = defineBatchScript('store-output');
const noteScript = defineBatchScript('note');
const endScript = defineBatchScript('end');
const releaseScript = defineBatchScript('release');

/** Time after which another host may drive a batch whose driver has not renewed its lease. */
export const BATCH_LEASE_MS = 5_000;
export const RENEW_BATCH_EVERY_MS = 1_000;

/** Bytes of lines that are stored together. A longer line is stored in pieces. */
const JOINED_BYTES = 524_288;

/**
 * Renews the lease, and stores how far the batch is. Resolves with the reason of a cancellation that was asked for.
 * Throws LEASE_LOST.
 */
export async function renewBatch(lease: BatchLease, progress?: object): Promise<{ cancel: string | undefined }> {
  const args = [BATCH_LEASE_MS, progress === undefined ? '' : JSON.stringify(progress)];
  const [held, cancel] = asArray(await runAsDriver(lease, renewScript, args), renewScript.name);
  if (held !== 1) throw leaseLost(lease);
  await lookLater(lease, BATCH_LEASE_MS);
  return { cancel: asString(cancel) || undefined };
}

/**
 * Appends result lines, JSON without a line feed, once and in their order. `retry` may repeat each of the calls. After
 * an error nothing more may be appended. Throws LEASE_LOST, and BATCH_TOO_LARGE when there is no room for the lines.
 */
export async function appendResults(
  lease: BatchLease,
  lines: readonly string[],
  retry: Retry = callOnce,
): Promise<void> {
  let waiting: Buffer[] = [];
  let bytes = 0;
  const send = async () => {
    const joined = Buffer.concat(waiting);
    const count = waiting.length;
    [waiting, bytes] = [[], 0];
    const pieces = [...cutPieces(joined)];
    for (const [index, piece] of pieces.entries())
      await retry(() => appendPiece(lease, piece, index === pieces.length - 1 ? count : 0));
  };
  for (const text of lines) {
    const line = Buffer.from(`${text}\n`);
    if (bytes > 0 && bytes + line.byteLength > JOINED_BYTES) await send();
    waiting.push(line);
    bytes += line.byteLength;
  }
  if (bytes > 0) await send();
}

async function appendPiece(lease: BatchLease, piece: Buffer, lines: number): Promise<void> {
  const part = String(lease.next);
  const sealed = await sealPiece(lease, 'batch-results', { id: lease.id, part }, piece);
  const stored = await runAsDriver(lease, appendScript, [part, lines, sealed, LIMITS.detachedOutputBytes]);
  if (stored === -1) throw linesTooLarge(lease);
  if (stored !== 1) throw leaseLost(lease);
  lease.next++;
}

/**
 * Stores packed outputs of a run of a task, in place of earlier ones of it. An earlier one is removed also when there
 * is none now, or when it does not fit. Resolves with the errors of those that do not fit, by their paths. Throws
 * LEASE_LOST.
 */
export async function storeOutputs(
  lease: BatchLease,
  run: string,
  outputs: readonly { path: string; packed: Uint8Array | undefined }[],
): Promise<Record<string, WireError>> {
  const { sealer, keys, id } = lease;
  const errors: [string, WireError][] = [];
  let left: number = LIMITS.detachedTaskOutputBytes;
  for (const { path, packed } of outputs) {
    const part = outputName(run, path);
    const place = sealPlace('batch-output', keys, { batch: keys.name, id, part });
    const sealed = packed === undefined ? '' : sealer.seal(packed, place);
    const fits = sealed.length <= left;
    const args = [part, fits ? sealed : '', LIMITS.detachedOutputBytes];
    const stored = await runAsDriver(lease, storeOutputScript, args);
    if (stored === 0) throw leaseLost(lease);
    if (!fits) errors.push([path, runOutputsTooLarge(path)]);
    else if (stored === 1) left -= sealed.length;
    else errors.push([path, batchIsFull(path)]);
  }
  return Object.fromEntries(errors);
}

/** Replaces the manifest of the batch. Throws LEASE_LOST. */
export async function storeManifest(lease: BatchLease, manifest: object): Promise<void> {
  const { sealer, keys, id } = lease;
  const place = sealPlace('batch-manifest', keys, { batch: keys.name, id, part: '' });
  await mustHold(lease, noteScript, [sealer.seal(JSON.stringify(manifest), place)]);
}

export interface BatchEnd {
  /** What ended the batch before its last task. */
  stoppedBy?: 'batch-deadline' | 'failure' | 'signal' | undefined;
  totals: object;
  progress: object;
  /** Why the batch failed as a whole. */
  failure?: WireError | undefined;
}

/** Ends the batch, whose results are kept for the retention. Throws LEASE_LOST. */
export async function endBatch(lease: BatchLease, { stoppedBy, totals, progress, failure }: BatchEnd): Promise<void> {
  const { redis, fleet, sealer, keys, id } = lease;
  const place = sealPlace('batch-failure', keys, { batch: keys.name, id, part: '' });
  const sealed = failure === undefined ? '' : sealer.seal(JSON.stringify(failure), place);
  const retention = retentionOf(redis, keys.namespace);
  const says = [JSON.stringify(totals), JSON.stringify(progress)];
  await mustHold(lease, endScript, [retention, stoppedBy ?? '', ...says, sealed]);
  await expireName(lease);
  await redis.zrem(fleet.batches, batchMember(keys)).catch(throwQueueError);
}

/**
 * Gives the lease back, so that another host drives the batch. `counts`: this driver counts as one that came to
 * nothing, unless it has stored a line. Throws LEASE_LOST.
 */
export async function releaseBatch(lease: BatchLease, { counts }: { counts: boolean }): Promise<void> {
  await mustHold(lease, releaseScript, [counts ? 1 : 0]);
  await lookLater(lease, 0);
  // Hosts also poll.
  const { redis, fleet } = lease;
  await redis.publish(fleet.sessionsWakeUps, encodeWakeUp({ type: 'batches' })).catch(() => {});
}

/** Lets hosts look at the batch again in `ms`. */
async function lookLater({ redis, fleet, keys }: BatchLease, ms: number): Promise<void> {
  await runScript(redis, putOffScript, [fleet.batches], [batchMember(keys), '', ms]);
}

const runAsDriver = (lease: BatchLease, script: Script, args: ScriptArgument[]) =>
  runOnBatch(lease, script, [lease.fence, lease.host, ...args]);

async function mustHold(lease: BatchLease, script: Script, args: ScriptArgument[]): Promise<void> {
  if ((await runAsDriver(lease, script, args)) !== 1) throw leaseLost(lease);
}

function leaseLost({ keys: { name, tenant }, host }: BatchLease): ShellfleetError {
  const message = `The host ${host} does not drive the batch ${name} any more: another one does, or it is over.`;
  return new ShellfleetError('LEASE_LOST', message, { name, tenant, host });
}

function linesTooLarge({ keys: { name } }: BatchLease): ShellfleetError {
  const limit = LIMITS.detachedOutputBytes;
  const message = `The result lines of the batch ${name} are over ${limit / 1_048_576} MiB, sealed, so it ends. Let its commands print less, or split it.`;
  return new ShellfleetError('BATCH_TOO_LARGE', message, { name, limit });
}

/** Returns the error of an output that does not fit among those of one run of a task. */
export function runOutputsTooLarge(path: string): WireError {
  return tooLarge(path, LIMITS.detachedTaskOutputBytes, 'the outputs of one run of a task');
}

function batchIsFull(path: string): WireError {
  return tooLarge(path, LIMITS.detachedOutputBytes, 'outputs and results of the whole batch');
}

function tooLarge(path: string, limit: number, what: string): WireError {
  return new ShellfleetError(
    'FILE_TOO_LARGE',
    `${path} was not kept: ${what} may take ${limit / 1_048_576} MiB in a detached batch, sealed.`,
    { path, limit },
  ).toJSON();
}
