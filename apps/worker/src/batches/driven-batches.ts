import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { DriveEnd, HeldLease } from '@shellfleet/client/driving';
import { repeat } from '@shellfleet/concurrency';
import {
  type BatchLease,
  type DueBatch,
  endBatch,
  listOwnBatches,
  putOffBatch,
  readDueBatches,
  releaseBatch,
  takeBatch,
} from '@shellfleet/mailbox';
import { ATTRIBUTES, batchKeys, entryIdSchema, isShellfleetError, ShellfleetError } from '@shellfleet/protocol';
import type { HostServices } from '../run/host-services.ts';

// Why workers drive, and how: docs/adr/0043-a-worker-drives-batches-as-a-client.md
//
// DRIVEN-1. A worker drives a batch under a lease that it renews. It stops at once when it may have lost the lease, and
//     Redis refuses what it writes later (DRIVE-1, DRIVE-2).
// DRIVEN-2. A restarted worker continues the batches that its host drove, without a wait: one process at a time acts as
//     the host.
// DRIVEN-3. The code that drives is loaded when the first batch is found.

/** Interval of looks that no wake-up has announced. */
const LOOK_EVERY_MS = 2_000;
/** Time for which this worker leaves a batch alone that it cannot drive. */
const LEAVE_ALONE_MS = 30_000;

/** The detached batches that a worker drives. */
export interface DrivenBatches {
  readonly count: number;
  /** Looks for batches now. Never rejects. */
  look(): Promise<void>;
  /** Leaves all batches to other hosts. Resolves when it has given back their leases. */
  handOver(): Promise<void>;
  /** Looks no more, and leaves all batches to other hosts. */
  close(): Promise<void>;
}

interface Drive {
  handOver(): void;
  ended: Promise<void>;
}

/** Continues the batches of this host, and looks for others while it may take them, until closed. */
export function driveBatches(host: HostServices, mayTake: () => boolean): DrivenBatches {
  const worker = new BatchWorker(host, mayTake);
  const rounds = repeat(() => worker.look(), {
    everyMs: LOOK_EVERY_MS,
    mayBegin: () => worker.hasRoom,
    onError: (err) => host.logger.debug({ err }, 'queue.unavailable'),
  });
  void rounds.now();
  return {
    get count() {
      return worker.count;
    },
    async look() {
      await rounds.now();
      // The first call may have joined a round that had looked before.
      await rounds.now();
    },
    handOver: () => worker.handOver(),
    async close() {
      worker.close();
      await Promise.all([rounds.close(), worker.handOver()]);
      // What the last round has taken.
      await worker.handOver();
    },
  };
}

class BatchWorker {
  readonly #host: HostServices;
  readonly #mayTake: () => boolean;
  readonly #drives = new Map<string, Drive>();
  /** Batches that could not be driven here → when this worker looks at them again. */
  readonly #leftAlone = new Map<string, number>();
  #isClosed = false;
  #hasOwn = false;

  constructor(host: HostServices, mayTake: () => boolean) {
    this.#host = host;
    this.#mayTake = mayTake;
  }

  get count(): number {
    return this.#drives.size;
  }

  get hasRoom(): boolean {
    return !this.#isClosed && this.#mayTake() && this.#drives.size < this.#host.settings.batches;
  }

  async look(): Promise<void> {
    if (!this.#hasOwn) await this.#takeOwn();
    while (this.hasRoom) {
      const driven = [...this.#drives.keys()].map((member) => member.split(' ')[0] ?? '');
      const [due] = await readDueBatches(this.#host.redis, this.#host.fleet, 1, driven);
      if (due === undefined) return;
      await this.#take(due);
    }
  }

  close(): void {
    this.#isClosed = true;
  }

  async handOver(): Promise<void> {
    const drives = [...this.#drives.values()];
    for (const drive of drives) drive.handOver();
    await Promise.all(drives.map(({ ended }) => ended));
  }

  /** Continues what an earlier process of this host drove. */
  async #takeOwn(): Promise<void> {
    const { redis, fleet, hostId, batchDirectory } = this.#host;
    // A repetition, after an outage, must not remove the files of what drives by now.
    if (this.#drives.size === 0) await rm(batchDirectory, { recursive: true, force: true });
    for (const own of await listOwnBatches(redis, fleet, hostId)) if (this.hasRoom) await this.#take(own);
    this.#hasOwn = true;
  }

  async #take(due: DueBatch): Promise<void> {
    const { redis, sealer, fleet, namespace, hostId, logger } = this.#host;
    const member = `${due.tenant} ${due.name}`;
    const mayLookAt = this.#leftAlone.get(member) ?? 0;
    if (this.#drives.has(member) || mayLookAt > performance.now()) return putOffBatch(redis, fleet, due, LOOK_EVERY_MS);
    this.#leftAlone.delete(member);
    const access = { redis, sealer, fleet, keys: batchKeys(namespace, due.tenant, due.name) };
    try {
      const { HeldLease } = await import('@shellfleet/client/driving');
      const held = new HeldLease();
      const taken = await takeBatch(access, due, hostId);
      if (taken === undefined) return;
      if (this.#host.settings.file.keys !== undefined) return await refuse(taken.lease);
      await this.#drive(member, taken, held);
    } catch (err) {
      if (isPassing(err)) throw err;
      this.#leaveAlone(member, LEAVE_ALONE_MS);
      logger.warn({ err, [ATTRIBUTES.tenant]: due.tenant, batch: due.name }, 'batch.not-taken');
    }
  }

  async #drive(
    member: string,
    taken: NonNullable<Awaited<ReturnType<typeof takeBatch>>>,
    held: HeldLease,
  ): Promise<void> {
    const { settings, logger, audit, batchDirectory } = this.#host;
    const { batch, lease } = taken;
    const { id, name, tenant } = batch;
    const by = batch.by.slice(0, 256);
    // Any process of the tenant can have written the id.
    if (!entryIdSchema.safeParse(id).success)
      throw new ShellfleetError('COMMAND_INVALID', `The batch ${name} has an id that no client gives.`);
    const directory = join(batchDirectory, id);
    const { BatchDrive } = await import('@shellfleet/client/driving');
    await mkdir(directory, { recursive: true, mode: 0o700 });
    // This host may have been drained since it looked. From here on, `handOver` finds the drive.
    if (!this.hasRoom) {
      await rm(directory, { recursive: true, force: true });
      return await releaseBatch(lease, { counts: false });
    }
    const drive = new BatchDrive({ ...taken, held, redisUrl: settings.redisUrl, directory });
    const about = { [ATTRIBUTES.tenant]: tenant, batch: name, submission: id };
    audit.note(tenant, () => ({ type: 'batch-start', batch: name, id, by, fence: lease.fence }));
    logger.info({ ...about, submittedBy: by }, 'batch.taken');
    const ended = drive.run().then(async (end) => {
      await rm(directory, { recursive: true, force: true }).catch(() => {});
      this.#drives.delete(member);
      audit.note(tenant, () => ({ type: 'batch-end', batch: name, id, ...describeEnd(end) }));
      if (end.type === 'ended') {
        const { stoppedBy, failure } = end;
        return logger.info({ ...about, stoppedBy, ...(failure && { err: failure }) }, 'batch.ended');
      }
      this.#leaveAlone(member, isPassing(end.because) ? LOOK_EVERY_MS : LEAVE_ALONE_MS);
      logger.warn({ ...about, err: end.because }, 'batch.left');
    });
    this.#drives.set(member, { handOver: () => drive.handOver(), ended });
  }

  #leaveAlone(member: string, forMs: number): void {
    this.#leftAlone.set(member, performance.now() + forMs);
  }
}

const isPassing = (error: unknown): boolean =>
  isShellfleetError(error) && ['LEASE_LOST', 'QUEUE_UNAVAILABLE'].includes(error.code);

function describeEnd(end: DriveEnd): { how: 'ended' | 'left'; stoppedBy?: string; error?: string } {
  if (end.type === 'left') return { how: 'left' };
  const { stoppedBy, failure } = end;
  return {
    how: 'ended',
    ...(stoppedBy === undefined ? {} : { stoppedBy }),
    ...(failure === undefined ? {} : { error: failure.code }),
  };
}

/** Ends a batch that no host of this fleet may drive, because its commands would not be signed. */
async function refuse(lease: BatchLease): Promise<void> {
  const failure = new ShellfleetError(
    'UNAUTHORIZED',
    'This fleet runs only what a known key has signed, and a worker has no key of the submitter. Run the batch without --detach.',
  ).toJSON();
  await endBatch(lease, { totals: {}, progress: {}, failure });
}
