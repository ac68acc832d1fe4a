import { availableParallelism } from 'node:os';
import { repeat } from '@shellfleet/concurrency';
import { type HostGate, isMovable, type PolicyName } from '@shellfleet/protocol';
import pLimit from 'p-limit';
import { hasRunOut } from '../host/host-memory.ts';
import type { Logger } from '../log/logger.ts';
import { countPlaces, findCrowd, findShortages } from './decide.ts';
import { type Lesson, learn } from './lesson.ts';
import type { Room } from './read-room.ts';
import { describeLesson, findPause, reserveOf, type Thresholds } from './reserve.ts';

// The gate decides, before each fetch of sessions, how many this host takes.
// GATE-1. With a shortage (of memory, of disk, by pressure, of an engine), or while it does not know the rules of its
//         fleet, the host opens no shell, and its sessions without one leave.
// GATE-2. Memory is measured at intervals. Sessions that were being opened then, and those taken since, count with an
//         estimate in addition. For their sake the host takes no further session, but none leaves.
// GATE-3. While many sessions wait here to be opened, or were just taken, further ones wait in the queue, where any
//         host can take them. A Pod that waits for its cluster counts neither here nor in GATE-2: its memory is not
//         this host's, and the next session may have a Pod that lives.
// GATE-4. When the kernel kills processes for the memory of the whole host, the host takes no session for a moment, and
//         keeps more memory free from then on (lesson.ts).

/** Interval of measurements, and so the delay until a host with room takes sessions again. */
const INTERVAL_MS = 1_000;
/** Sessions opened at a time. More of them delay each other. */
const OPENED_AT_A_TIME = 2 * availableParallelism();
/** Pods that wait for a node, a quota or an image at a time. More of them delay each other, and the scheduler. */
const PENDING_PODS = 20;
/** Enough for the next openings to begin without a wait for Redis, also after a batch of sessions was taken. */
const MOST_WAITING = 4 * OPENED_AT_A_TIME;

export interface GateOptions {
  stateDirectory: string;
  thresholds: Thresholds;
  readRoom(stateDirectory: string): Promise<Room>;
  /** Returns why the host can serve no further session for reasons of other parts, one sentence each. */
  otherProblems(): string[];
  logger: Logger;
  /** Is called when the host may have room again. */
  onRoom(): void;
  intervalMs?: number;
}

export interface Gate {
  /** Returns why this host opens no shells at present, one sentence each (GATE-1). */
  problems(): string[];
  /** Returns how many sessions the host takes now. The reason for none is reported in `describe`. */
  admits(): number;
  /** Returns the number of further sessions for which the host has memory (GATE-2). */
  places(): number;
  /** Counts a session that was taken (GATE-2). `begun` resolves when it finds or opens its shell, or needs none. */
  taken(begun: Promise<unknown>): void;
  /** Tells that the kernel killed processes because the memory of the host ran out (GATE-4). */
  ranOutOfMemory(): void;
  /** Returns what the operator should know, one sentence each. */
  warnings(): string[];
  /** Opens a sandbox when its turn has come. Pods, which the cluster opens, have turns of their own. */
  limitOpening<T>(policy: PolicyName, open: () => Promise<T>): Promise<T>;
  /** Returns the state for a heartbeat. */
  describe(): HostGate;
  close(): Promise<void>;
}

/** Measures the host until closed. Resolves after the first measurement. */
export async function openGate(options: GateOptions): Promise<Gate> {
  const { stateDirectory, thresholds, otherProblems, logger, onRoom } = options;
  const [here, pods] = [pLimit(OPENED_AT_A_TIME), pLimit(PENDING_PODS)];
  const openingHere = () => here.activeCount + here.pendingCount;
  const opening = () => openingHere() + pods.activeCount + pods.pendingCount;
  let room = await options.readRoom(stateDirectory);
  let shortages: string[] = [];
  let unmeasured = 0;
  /** Number of sessions that were taken and have not begun to open. */
  let coming = 0;
  let refusal: HostGate['refusal'] = null;
  let refusedLast = false;
  let lesson: Lesson | undefined;

  const reserve = () => reserveOf(room.memory, thresholds, lesson, Date.now());
  const ranOutOfMemory = () => {
    lesson = learn(lesson, Date.now());
    logger.warn({ factor: lesson.factor }, 'host.memory-ran-out');
  };
  const judge = () => {
    const wasShort = shortages.length > 0;
    shortages = findShortages(stateDirectory, room, thresholds, reserve());
    if (!wasShort && shortages.length > 0) logger.warn({ problem: shortages.join(' ') }, 'host.short');
    if (wasShort && shortages.length === 0) logger.info('host.has-room');
    if (refusedLast) onRoom();
  };
  judge();
  const measure = async () => {
    const { memory: before } = room;
    room = await options.readRoom(stateDirectory);
    if (hasRunOut([before, room.memory], thresholds.leastFree.memoryBytes)) ranOutOfMemory();
    unmeasured = openingHere() + coming;
    judge();
  };
  const rounds = repeat(measure, { everyMs: options.intervalMs ?? INTERVAL_MS });

  const waiting = () => here.pendingCount + coming;
  const onBegun = () => {
    if (refusedLast) onRoom();
  };
  const problems = () => [...otherProblems(), ...shortages];
  const reason = (): string | undefined => {
    const found = problems();
    if (found.length > 0) return found.join(' ');
    const crowd = { sessions: unmeasured, waiting: waiting(), mostWaiting: MOST_WAITING };
    return findPause(lesson, Date.now()) ?? findCrowd(room, crowd, thresholds, reserve());
  };
  const places = () => countPlaces(room, { sessions: unmeasured }, thresholds, reserve());
  return {
    problems,
    admits() {
      const why = reason();
      refusedLast = why !== undefined;
      if (why !== undefined) refusal = { at: new Date().toISOString(), reason: why };
      return refusedLast ? 0 : Math.min(places(), MOST_WAITING - waiting());
    },
    places,
    taken(begun) {
      unmeasured += 1;
      coming += 1;
      void begun.finally(() => {
        coming -= 1;
        onBegun();
      });
    },
    ranOutOfMemory,
    warnings: () => describeLesson(lesson, reserve(), Date.now()),
    limitOpening: (policy, open) => (isMovable(policy) ? pods : here)(open).finally(onBegun),
    describe: () => ({
      ...{ reason: reason() ?? null, refusal, opening: opening() },
      ...{ freeMemoryBytes: room.memory.freeBytes, freeDiskBytes: room.disk?.freeBytes ?? null },
      ...{ leastMemoryBytes: reserve().leastBytes, sessionBytes: reserve().sessionBytes },
      ranOutAt: lesson === undefined ? null : new Date(lesson.at).toISOString(),
      ...{ memoryPressure: room.memoryPressure ?? null, ioPressure: room.ioPressure ?? null },
    }),
    close: rounds.close,
  };
}
