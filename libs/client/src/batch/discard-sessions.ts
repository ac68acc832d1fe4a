import { discard, readGeneration } from '@shellfleet/mailbox';
import { parseCommandId } from '@shellfleet/protocol';
import { readKept } from '../read/kept.ts';
import type { FleetView } from '../view.ts';
import type { LineSessions, ResultsFile } from './results-file.ts';
import type { Task } from './task.ts';
import type { TaskResult } from './task-result.ts';
import type { UsedSession } from './used-session.ts';

/** Most sessions whose results are brought to the disk together. */
const MOST_TOGETHER = 256;
/** Longest time for which a session waits for others. */
const WAIT_MS = 200;

/**
 * Lets the fleet forget the sessions of a batch. A session is discarded when the line of its task is on the disk, so
 * that a driver that resumes after a crash of the machine still finds what has no line.
 */
export class DiscardSessions implements AsyncDisposable {
  readonly #view: FleetView;
  readonly #file: Pick<ResultsFile, 'sync'>;
  #waiting: UsedSession[] = [];
  #timer: NodeJS.Timeout | undefined;
  #discarding: Promise<void> = Promise.resolve();

  constructor(view: FleetView, file: Pick<ResultsFile, 'sync'>) {
    this.#view = view;
    this.#file = file;
  }

  /** Discards what an earlier driver has left that was killed before it discarded the sessions of these lines. */
  async addEarlier(newest: readonly LineSessions[]): Promise<void> {
    const { redis, keysOf } = this.#view;
    const kept = await readKept(this.#view);
    const isDone = (sessionId: string) => !kept.has(sessionId);
    const finding = newest.flatMap((line) =>
      sessionIdsOf(line)
        .filter(isDone)
        .map(async (sessionId): Promise<UsedSession[]> => {
          const keys = keysOf(sessionId);
          const found = await readGeneration(redis, keys);
          if (found === undefined) return [];
          const entryIds = line.commandIds.flatMap((id) => parseCommandId(id)?.entryId ?? []);
          return [{ keys, generation: found.generation, entryIds, idempotencyKeys: line.idempotencyKeys }];
        }),
    );
    await this.add((await Promise.all(finding)).flat());
  }

  /** Discards the sessions of a task whose line is in the file. Waits while more wait than are discarded together. */
  async add(used: readonly UsedSession[]): Promise<void> {
    this.#waiting.push(...used);
    if (this.#waiting.length >= MOST_TOGETHER) {
      const before = this.#discarding;
      void this.#discard();
      await before;
    } else
      this.#timer ??= setTimeout(() => {
        this.#timer = undefined;
        void this.#discard();
      }, WAIT_MS).unref();
  }

  /** Never rejects. What is not discarded expires with the fleet's retention. */
  #discard(): Promise<void> {
    const sessions = this.#waiting;
    this.#waiting = [];
    if (sessions.length > 0)
      this.#discarding = this.#discarding.then(async () => {
        await this.#file.sync();
        const { redis } = this.#view;
        await Promise.all(sessions.map(({ keys, generation, ...known }) => discard(redis, keys, generation, known)));
      });
    this.#discarding = this.#discarding.catch(() => {});
    return this.#discarding;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    await this.#discard();
  }
}

/**
 * Returns whether a container of the task may be kept for a post-mortem. Then its sessions are not discarded, because
 * `ps` lists the container by its session.
 */
export function mayBeKept(task: Task | undefined, { passed, outcome, attempts }: TaskResult): boolean {
  return task?.spec?.keepOnFailure === true && (!passed || outcome !== 'success' || attempts > 1);
}

/** Returns the sessions of all attempts, and those of grades. */
function sessionIdsOf({ sessionId, attempts, commandIds }: LineSessions): string[] {
  const first = attempts === 1 ? sessionId : sessionId.slice(0, -`.${attempts}`.length);
  const others = Array.from({ length: attempts - 1 }, (_, index) => `${first}.${index + 2}`);
  const used = commandIds.flatMap((id) => parseCommandId(id)?.sessionId ?? []);
  return [...new Set([...(first === '' ? [] : [first, ...others]), ...used])];
}
