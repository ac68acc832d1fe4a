import { Notifier } from '@shellfleet/concurrency';

// POOL-1. Its cost is the same for each task, however many run: the end of a task adds its result to a queue, and nothing waits for all of them.
// POOL-2. At most `concurrency` tasks run, or have ended and wait for the consumer. The next task is read only when there is room for it.

export interface PoolOptions {
  concurrency: number;
  /** When it aborts, no further task starts. */
  signal?: AbortSignal | undefined;
}

/**
 * Starts the tasks of `source`, and yields their results in the order in which they end. `start` returns undefined for a task that is left out,
 * and never rejects. When the consumer stops, or the source fails, no further task starts and running ones are awaited.
 */
export async function* runPool<T, R>(
  source: AsyncIterator<T>,
  start: (task: T) => Promise<R> | undefined,
  { concurrency, signal }: PoolOptions,
): AsyncGenerator<R, void, undefined> {
  const changed = new Notifier();
  let ended: R[] = [];
  let running = 0;
  /** running, or ended and not yet taken by the consumer */
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
      // The consumer may have stopped meanwhile: then the task is dropped.
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
    // The source may still be producing a task. It is not run, and an error of it is dropped.
    source.return?.(undefined)?.catch(() => {});
    while (running > 0) await changed.wait();
  }
}
