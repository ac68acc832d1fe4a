import { Notifier } from '@shellfleet/concurrency';

// POOL-1. The cost of a task does not depend on how many tasks run: at its end its result joins a queue. No code waits
//     for all running tasks at once.
// POOL-2. At most `concurrency` tasks run, or have ended and wait for the consumer. The next task is read only when
//     there is room for it.

export interface PoolOptions {
  concurrency: number;
  /** Signal after whose abort no further task starts. */
  signal?: AbortSignal | undefined;
}

/**
 * Runs tasks with `start`, and yields their results in the order of their ends. `start` never rejects, and returns
 * undefined to skip a task.
 */
export async function* runPool<T, R>(
  source: AsyncIterator<T>,
  start: (task: T) => Promise<R> | undefined,
  { concurrency, signal }: PoolOptions,
): AsyncGenerator<R, void, undefined> {
  const changed = new Notifier();
  let ended: R[] = [];
  let running = 0;
  /** Number of tasks that run, or whose results wait for the consumer. */
  let unfinished = 0;
  let isReading = false;
  let exhausted = false;
  let failure: { error: unknown } | undefined;

  const onEnd = (result: R) => {
    running--;
    ended.push(result);
    changed.notify();
  };
  const begin = (task: T) => {
    const end = start(task);
    if (end === undefined) return;
    running++;
    unfinished++;
    void end.then(onEnd);
  };
  const read = async () => {
    while (!exhausted && unfinished < concurrency) {
      const taken = await source.next();
      // The consumer has stopped, so the task is dropped.
      if (exhausted) return;
      if (taken.done) exhausted = true;
      else begin(taken.value);
    }
  };
  const readMore = () => {
    if (isReading || exhausted || unfinished >= concurrency) return;
    isReading = true;
    read()
      .catch((error: unknown) => {
        failure = { error };
        exhausted = true;
      })
      .finally(() => {
        isReading = false;
        changed.notify();
      });
  };
  const stop = () => {
    exhausted = true;
    changed.notify();
  };
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted) exhausted = true;
  try {
    for (;;) {
      readMore();
      const some = ended;
      ended = [];
      for (const result of some) {
        unfinished--;
        readMore();
        yield result;
      }
      if (failure !== undefined) throw failure.error;
      if (ended.length > 0) continue;
      if (exhausted && running === 0) return;
      await changed.wait();
    }
  } finally {
    exhausted = true;
    signal?.removeEventListener('abort', stop);
    // A task or error that the source still produces is dropped.
    source.return?.(undefined)?.catch(() => {});
    while (running > 0) await changed.wait();
  }
}
