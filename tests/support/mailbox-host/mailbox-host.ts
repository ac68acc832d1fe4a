import { setTimeout as delay } from 'node:timers/promises';
import { adopt, announce, type Entry, finish, notify, type Owner, release, take } from '@shellfleet/mailbox';
import { grant } from '@shellfleet/placement';
import {
  type CommandPayload,
  type EntryPayload,
  entryPayloadSchema,
  type FileAnswer,
  fieldsOf,
  fleetKeys,
  type HostBeat,
  hostCallSchema,
  hostKeys,
  hostOfferSchema,
  LIMITS,
  newResult,
  PROTOCOL_VERSION,
  parseSessionJobId,
  parseWakeUp,
  type SessionKeys,
  sessionKeys,
  sessionsQueue,
  type WakeUp,
  type WireResult,
} from '@shellfleet/protocol';
import { connectRedis, retryWhileRedisIsDown } from '@shellfleet/redis';
import { createSealer, type Sealer, sealPlace } from '@shellfleet/sealing';
import { type Job, Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { classOf } from '../class-of.ts';
import { declareTestFleet, keyspaceOf } from '../keyspace.ts';
import { answerFile } from './answer-file.ts';
import { type MemoryFiles, runFileInMemory } from './memory-files.ts';
import { runScript } from './run-script.ts';

/**
 * A minimal host for tests of the client: real mailbox scripts, real sessions queue, real processes (`sh -c` each, so no shell state),
 * files in memory, no sandbox and no keeper. It owns a session for the duration of one lock, and never takes over from another host.
 */
export interface MailboxHost extends AsyncDisposable {
  readonly id: string;
  /** Scripts in the order in which they began, by session. */
  readonly began: { session: string; script: string }[];
  /** Stops taking entries until `resume`. A running entry continues. */
  pause(): void;
  resume(): void;
}

export interface MailboxHostOptions {
  redisUrl: string;
  namespace: string;
  sealKey: string;
  id?: string;
  slots?: number;
  paused?: boolean;
}

const LOCK_MS = 65_000;
const ALIVE_MS = 5_000;

export async function startMailboxHost(options: MailboxHostOptions): Promise<MailboxHost> {
  await declareTestFleet(options.redisUrl, options.namespace);
  const host = new TinyHost({ ...options, namespace: keyspaceOf(options.namespace) });
  await host.start();
  return host;
}

interface OwnedSession extends MemoryFiles {
  owner: Owner;
  job: Job;
  epoch: number;
  generation: string;
  draining: boolean;
  again: boolean;
  leaving: boolean;
  running?: { entryId: string; stop: () => void };
}

class TinyHost implements MailboxHost {
  readonly id: string;
  readonly began: { session: string; script: string }[] = [];
  readonly #options: MailboxHostOptions;
  readonly #sealer: Sealer;
  readonly #owned = new Map<string, OwnedSession>();
  #redis!: Redis;
  #subscriber!: Redis;
  #worker!: Worker;
  #queue!: Queue;
  #paused: boolean;
  #stopped = false;
  #fetching = false;
  #lastCall = '0-0';
  readonly #seenCalls = new Set<string>();
  #timer?: NodeJS.Timeout;

  constructor(options: MailboxHostOptions) {
    this.#options = options;
    this.id = options.id ?? 'tiny-host';
    this.#sealer = createSealer([options.sealKey]);
    this.#paused = options.paused ?? false;
  }

  async start(): Promise<void> {
    const { redisUrl, namespace } = this.#options;
    const { redis, duplicate } = await connectRedis(redisUrl, 'host', this.id);
    this.#redis = redis;
    this.#subscriber = duplicate('subscriber', `${this.id}-wakeups`);
    const fleet = fleetKeys(namespace);
    this.#worker = new Worker(sessionsQueue(classOf('docker', this.#options.sealKey)), null, {
      connection: redis,
      prefix: fleet.sessionQueues,
      autorun: false,
      lockDuration: LOCK_MS,
      skipLockRenewal: true,
      skipStalledCheck: true,
    });
    this.#worker.on('error', () => {});
    this.#queue = new Queue(sessionsQueue(classOf('docker', this.#options.sealKey)), {
      connection: redis,
      prefix: fleet.sessionQueues,
    });
    this.#queue.on('error', () => {});
    await this.#beat();
    this.#subscriber.on('message', (_channel: string, message: string) => this.#receive(parseWakeUp(message)));
    await this.#subscriber.subscribe(fleet.sessionsWakeUps, hostKeys(namespace, this.id).wakeUps);
    this.#timer = setInterval(() => void this.#look().catch(() => {}), 500);
    await this.#look();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    void this.#look().catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    clearInterval(this.#timer);
    for (const session of this.#owned.values()) session.running?.stop();
    while ([...this.#owned.values()].some(({ draining }) => draining)) await delay(5);
    await this.#redis.del(hostKeys(this.#options.namespace, this.id).alive);
    await this.#worker.close();
    await this.#queue.close();
    this.#subscriber.disconnect();
    this.#redis.disconnect();
  }

  async #beat(): Promise<void> {
    const { namespace, slots = 100 } = this.#options;
    const beat: HostBeat = {
      slots,
      free: slots - this.#owned.size,
      sessions: 0,
      running: 0,
      held: 0,
      policies: ['docker'],
      version: '0.0.0',
      protocol: PROTOCOL_VERSION,
      boot: 'tiny',
      draining: false,
      problems: [],
      warnings: [],
      sealKeys: [...this.#sealer.keyIds],
      allow: hostOfferSchema.parse({}),
      schema: 1,
      defaultImage: 'none',
      retentionMs: LIMITS.defaultRetentionMs,
    };
    await this.#redis
      .multi()
      .set(hostKeys(namespace, this.id).alive, JSON.stringify(beat), 'PX', ALIVE_MS)
      .zadd(fleetKeys(namespace).hosts, Date.now(), this.id)
      .exec();
  }

  #receive(wakeUp: WakeUp | undefined): void {
    if (wakeUp?.type === 'calls') return void this.#answerCalls().catch(() => {});
    if (wakeUp?.type === 'sessions') return void this.#fetch().catch(() => {});
    const session = wakeUp?.type === 'session' ? this.#owned.get(`${wakeUp.tenant}:${wakeUp.session}`) : undefined;
    if (session !== undefined) this.#kick(session);
  }

  async #look(): Promise<void> {
    if (this.#stopped) return;
    await this.#beat();
    await this.#fetch();
    await this.#answerCalls();
    for (const session of this.#owned.values()) this.#kick(session);
  }

  async #fetch(): Promise<void> {
    if (this.#fetching || this.#paused) return;
    this.#fetching = true;
    try {
      while (!this.#stopped && this.#owned.size < (this.#options.slots ?? 100)) {
        const job = await this.#worker.getNextJob(this.id, { block: false });
        if (job === undefined) return;
        if (!(await this.#own(job))) await this.#drop(job);
      }
    } finally {
      this.#fetching = false;
    }
  }

  /** Removes the job, then checks the mailbox again: an entry that was submitted in between found the job, so no other job was added. */
  async #drop(job: Job): Promise<void> {
    const keys = this.#keysOf(job);
    await job.moveToCompleted(null, this.id, false);
    if ((await this.#redis.llen(keys.queue)) === 0) return;
    await this.#queue.add('session', job.data, { jobId: job.id ?? '', removeOnComplete: true, removeOnFail: true });
  }

  #keysOf(job: Job): SessionKeys {
    const ref = parseSessionJobId(job.id ?? '');
    if (ref === undefined) throw new Error(`not one of our jobs: ${job.id}`);
    return sessionKeys(this.#options.namespace, ref.tenant, ref.session);
  }

  async #own(job: Job): Promise<boolean> {
    const keys = this.#keysOf(job);
    const granted = await grant(
      this.#redis,
      fleetKeys(keys.namespace),
      { ...keys, placementClass: classOf('docker', this.#options.sealKey) },
      this.id,
      LOCK_MS,
    );
    if (granted.type !== 'granted') return false;
    const owner: Owner = { redis: this.#redis, keys, fence: granted.fence, host: this.id };
    const adopted = await adopt(owner);
    if (adopted.type !== 'adopted') return false;
    const session: OwnedSession = {
      owner,
      job,
      epoch: adopted.epoch + 1,
      generation: adopted.generation,
      files: new Map(),
      parts: new Map(),
      draining: false,
      again: false,
      leaving: false,
    };
    this.#owned.set(keys.member, session);
    await announce(
      owner,
      { epoch: session.epoch, epochBase: 0, status: 'ready' },
      { type: 'session.opened', data: { hostId: this.id, epoch: session.epoch } },
    );
    if (adopted.life === 'closing') await this.#giveUp(session);
    else this.#kick(session);
    return true;
  }

  #kick(session: OwnedSession): void {
    session.again = true;
    if (session.draining || this.#paused || this.#stopped) return;
    session.draining = true;
    void this.#drain(session)
      .catch((error: unknown) => {
        if (!this.#stopped) console.error('tiny host:', error);
      })
      .finally(() => {
        session.draining = false;
      });
  }

  async #drain(session: OwnedSession): Promise<void> {
    while (session.again && !this.#stopped && !this.#paused) {
      session.again = false;
      for (;;) {
        const next = await retryWhileRedisIsDown(() => take(session.owner), undefined);
        // The client may have died after it closed the session and before it called the host.
        if (next.type === 'empty' && next.closing === true) await this.#giveUp(session);
        if (next.type !== 'started') break;
        await this.#run(session, next.entry);
        if (this.#paused || this.#stopped) break;
      }
    }
  }

  async #run(session: OwnedSession, entry: Entry): Promise<void> {
    const { keys } = session.owner;
    const { namespace, tenant, session: id } = keys;
    const payload = entryPayloadSchema.parse(
      JSON.parse(
        this.#sealer.open(entry.payload, sealPlace('payload', keys, { ...entry, generation: session.generation })),
      ),
    );
    const { result, answer } = await this.#execute(session, entry, payload);
    const shell = { state: 'kept' as const, epoch: session.epoch };
    const timings = { queuedMs: entry.startedAt - entry.acceptedAt, startMs: 0, runMs: 0, totalMs: 0 };
    const end = (wire: WireResult) =>
      finish(session.owner, entry.id, {
        result: { ...wire, shell, timings, hostId: this.id },
        ...('cancelReason' in wire && wire.cancelReason !== undefined && { cancelReason: wire.cancelReason }),
        epoch: session.epoch,
        // A host that is paused must find its entries unstarted, so it never rests.
        takeNext: false,
        ...(answer === undefined
          ? {}
          : { answer: this.#sealer.seal(JSON.stringify(answer), sealPlace('answer', keys, entry.id)) }),
      });
    let finished = await retryWhileRedisIsDown(() => end(result), undefined);
    let told = result;
    if (finished.type === 'cancelled') {
      const { reason: cancelReason } = finished;
      told = newResult({ outcome: 'cancellation', reason: 'cancelled', cancelReason }, fieldsOf(result));
      finished = await retryWhileRedisIsDown(() => end(told), undefined);
    }
    if (finished.type !== 'finished') throw new Error(`finish answered ${finished.type}`);
    const { event } = finished;
    await notify(this.#redis, namespace, entry.inbox, { tenant, session: id, entryId: entry.id, event, result: '' });
    if (payload.type === 'restart') session.files.clear();
  }

  async #execute(
    session: OwnedSession,
    entry: Entry,
    payload: EntryPayload,
  ): Promise<{ result: WireResult; answer?: FileAnswer }> {
    switch (payload.type) {
      case 'command':
        this.began.push({ session: session.owner.keys.session, script: payload.script });
        return { result: await this.#runScript(session, entry, payload) };
      case 'restart':
        session.epoch++;
        return {
          result: newResult(
            { outcome: 'success', exitCode: 0, reason: 'exited' },
            { shell: { state: 'lost', epoch: session.epoch } },
          ),
        };
      case 'file':
        return runFileInMemory(session, payload.operation);
    }
  }

  async #runScript(session: OwnedSession, entry: Entry, payload: CommandPayload): Promise<WireResult> {
    const onStarted = (stop: () => void) => {
      session.running = { entryId: entry.id, stop };
    };
    const result = await runScript({ owner: session.owner, sealer: this.#sealer, onStarted }, entry, payload);
    delete session.running;
    return result;
  }

  async #answerCalls(): Promise<void> {
    const { calls } = hostKeys(this.#options.namespace, this.id);
    const entries = await this.#redis.xrange(calls, `(${this.#lastCall}`, '+');
    for (const [id, fields] of entries) {
      // Two wake-ups may have read the same calls.
      if (this.#seenCalls.has(id)) continue;
      this.#seenCalls.add(id);
      this.#lastCall = id;
      const call = hostCallSchema.parse(JSON.parse(fields[1] ?? ''));
      const session = 'session' in call ? this.#owned.get(`${call.tenant}:${call.session}`) : undefined;
      if (session === undefined) continue;
      const means = { redis: this.#redis, keys: session.owner.keys, sealer: this.#sealer };
      if (call.type === 'ask') void answerFile(call, session, means).catch(() => {});
      if (call.type === 'close') void this.#giveUp(session).catch(() => {});
      else if (call.type === 'cancel' && session.running?.entryId === call.entry) session.running.stop();
    }
  }

  /** Ends a closing session: stops and finishes the running entry, then releases the session. */
  async #giveUp(session: OwnedSession): Promise<void> {
    const { keys } = session.owner;
    session.running?.stop();
    if (session.leaving) return;
    session.leaving = true;
    while ((await release(session.owner, 'queued')).type === 'busy') await delay(5);
    this.#owned.delete(keys.member);
    await this.#drop(session.job);
    await this.#fetch();
  }
}
